import { describe, expect, it } from "vitest";
import { evaluate, parseFormula, references } from "../src/formula";
import { FormulaError, tokenize } from "../src/tokens";

const cells: Record<string, number> = { A1: 2, A2: 4, A4: 9 };
const value = (source: string): number => evaluate(parseFormula(source), (key) => cells[key]);

describe("tokenize", () => {
  it("tells numbers, names and symbols apart", () => {
    expect(tokenize(" 1.5*b2 ")).toEqual([
      { kind: "number", value: 1.5 },
      { kind: "symbol", text: "*" },
      { kind: "name", text: "B2" },
    ]);
  });

  it("rejects other signs", () => {
    expect(() => tokenize("1 $ 2")).toThrow("unexpected text at 1: $ 2");
  });
});

describe("formula", () => {
  describe("operators", () => {
    it("binds products tighter than sums", () => {
      expect(value("1 + 2 * 3")).toBe(7);
      expect(value("(1 + 2) * 3")).toBe(9);
    });

    it("groups from the left", () => {
      expect(value("10 - 4 - 3")).toBe(3);
      expect(value("24 / 4 / 2")).toBe(3);
    });

    it("groups powers from the right", () => {
      expect(value("2 ^ 3 ^ 2")).toBe(512);
    });

    it("negates after powers", () => {
      expect(value("-2 ^ 2")).toBe(-4);
      expect(value("3 - -2")).toBe(5);
    });

    it("rejects division by zero", () => {
      expect(() => value("1 / (A1 - 2)")).toThrow(FormulaError);
    });
  });

  describe("functions", () => {
    it("skips empty cells of a range", () => {
      expect(value("COUNT(A1:A4)")).toBe(3);
      expect(value("average(A1:A4)")).toBe(5);
    });

    it("mixes ranges and values", () => {
      expect(value("SUM(A1:A2, 10, A4)")).toBe(25);
      expect(value("MAX(A1:A4, 3) - MIN(A2, A4)")).toBe(5);
    });

    it("rejects an average of nothing", () => {
      expect(() => value("AVERAGE(B1:B3)")).toThrow("AVERAGE of nothing");
    });
  });

  describe("references", () => {
    it("lists every cell once", () => {
      const found = references(parseFormula("-A1 + SUM(A1:A2, C3) * B2"));
      expect([...found].sort()).toEqual(["A1", "A2", "B2", "C3"]);
    });
  });

  describe("mistakes", () => {
    it("reports a missing parenthesis", () => {
      expect(() => parseFormula("SUM(A1, 2")).toThrow("missing )");
    });

    it("reports text after the formula", () => {
      expect(() => parseFormula("1 2")).toThrow("text after");
    });
  });
});
