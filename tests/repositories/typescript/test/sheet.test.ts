import { beforeEach, describe, expect, it } from "vitest";
import { quoteField, toCsv } from "../src/csv";
import { Sheet } from "../src/sheet";

describe("Sheet", () => {
  let sheet: Sheet;

  beforeEach(() => {
    sheet = new Sheet();
    sheet.set("A1", "3");
    sheet.set("A2", "=A1 * 2");
    sheet.set("A3", "=A1 + A2");
  });

  describe("values", () => {
    it("keeps numbers and texts", () => {
      sheet.set("b1", " total ");
      expect(sheet.get("A1")).toBe(3);
      expect(sheet.get("B1")).toBe("total");
      expect(sheet.get("Z9")).toBe("");
    });

    it("treats blank cells as empty", () => {
      sheet.set("B1", "  ");
      expect(sheet.get("B1")).toBe("");
    });
  });

  describe("recalculation", () => {
    it("follows a change through several cells", () => {
      expect(sheet.get("A3")).toBe(9);
      sheet.set("A1", "5");
      expect(sheet.get("A2")).toBe(10);
      expect(sheet.get("A3")).toBe(15);
    });

    it("forgets what a replaced formula read", () => {
      sheet.set("A2", "7");
      sheet.set("A1", "=A2");
      expect(sheet.get("A3")).toBe(14);
    });

    it("passes errors on", () => {
      sheet.set("A2", "=1 / 0");
      expect(sheet.get("A2")).toBe("#ERROR: division by zero");
      expect(sheet.get("A3")).toBe("#ERROR: error in A2");
    });
  });

  describe("cycles", () => {
    it("refuses a formula that reads itself", () => {
      expect(() => sheet.set("A1", "=A1")).toThrow("A1 would depend on itself");
    });

    it("refuses a longer cycle and keeps the old value", () => {
      expect(() => sheet.set("A1", "=A3 + 1")).toThrow("depend on itself");
      expect(sheet.get("A1")).toBe(3);
    });
  });
});

describe("csv", () => {
  it("quotes fields where needed", () => {
    expect(quoteField("plain")).toBe("plain");
    expect(quoteField("a,b")).toBe('"a,b"');
    expect(quoteField('say "so"')).toBe('"say ""so"""');
  });

  it("writes values and leaves gaps empty", () => {
    const sheet = new Sheet();
    sheet.set("B1", "4");
    sheet.set("A3", "=B1 / 8");
    expect(toCsv(sheet)).toBe(",4\n,\n0.5,");
  });

  it("writes nothing for an empty sheet", () => {
    expect(toCsv(new Sheet())).toBe("");
  });
});
