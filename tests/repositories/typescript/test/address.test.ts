import { describe, expect, it } from "vitest";
import { columnName, expandRange, formatAddress, parseAddress } from "../src/address";

describe("address", () => {
  describe("columnName", () => {
    it("uses one letter for the first columns", () => {
      expect(columnName(0)).toBe("A");
      expect(columnName(24)).toBe("Y");
    });

    it("goes on with two letters after Z", () => {
      expect(columnName(25)).toBe("Z");
      expect(columnName(26)).toBe("AA");
      expect(columnName(52)).toBe("BA");
    });
  });

  describe("parseAddress", () => {
    it("reads letters in either case", () => {
      expect(parseAddress(" b7 ")).toEqual({ column: 1, row: 6 });
    });

    it("is the inverse of formatAddress", () => {
      for (const text of ["A1", "Z9", "AA10", "BZ300"]) {
        expect(formatAddress(parseAddress(text))).toBe(text);
      }
    });

    it("rejects row zero", () => {
      expect(() => parseAddress("A0")).toThrow(RangeError);
    });
  });

  describe("expandRange", () => {
    it("lists cells row by row", () => {
      expect(expandRange("A1", "B2")).toEqual(["A1", "B1", "A2", "B2"]);
    });

    it("takes corners in any order", () => {
      expect(expandRange("B3", "A2")).toEqual(["A2", "B2", "A3", "B3"]);
    });
  });
});
