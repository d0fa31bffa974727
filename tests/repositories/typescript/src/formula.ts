import { expandRange } from "./address";
import { FormulaError, Token, tokenize } from "./tokens";

export type Expression =
  | { kind: "number"; value: number }
  | { kind: "cell"; address: string }
  | { kind: "range"; addresses: string[] }
  | { kind: "negate"; operand: Expression }
  | { kind: "binary"; operator: string; left: Expression; right: Expression }
  | { kind: "call"; name: string; arguments: Expression[] };

const PRECEDENCE: Record<string, number> = { "+": 1, "-": 1, "*": 2, "/": 2, "^": 3 };

const FUNCTIONS: Record<string, (values: number[]) => number> = {
  SUM: (values) => values.reduce((total, value) => total + value, 0),
  MIN: (values) => Math.min(...values),
  MAX: (values) => Math.max(...values),
  COUNT: (values) => values.length,
  AVERAGE: (values) => {
    if (values.length === 0) {
      throw new FormulaError("AVERAGE of nothing");
    }
    return FUNCTIONS.SUM(values) / values.length;
  },
};

/** Reads a formula without its leading `=`. */
export function parseFormula(source: string): Expression {
  const tokens = tokenize(source);
  let position = 0;

  const accept = (text: string): boolean => {
    const token: Token | undefined = tokens[position];
    if (token?.kind === "symbol" && token.text === text) {
      position++;
      return true;
    }
    return false;
  };

  const expect = (text: string): void => {
    if (!accept(text)) {
      throw new FormulaError(`missing ${text}`);
    }
  };

  const primary = (): Expression => {
    if (accept("-")) {
      return { kind: "negate", operand: binary(PRECEDENCE["*"]) };
    }
    if (accept("(")) {
      const inner = binary(1);
      expect(")");
      return inner;
    }
    const token: Token | undefined = tokens[position++];
    if (token?.kind === "number") {
      return token;
    }
    if (token?.kind !== "name") {
      throw new FormulaError("a value is missing");
    }
    if (accept("(")) {
      return { kind: "call", name: token.text, arguments: list() };
    }
    if (accept(":")) {
      const last = tokens[position++];
      if (last?.kind !== "name") {
        throw new FormulaError("a range needs two corners");
      }
      return { kind: "range", addresses: expandRange(token.text, last.text) };
    }
    return { kind: "cell", address: token.text };
  };

  const list = (): Expression[] => {
    const items: Expression[] = [];
    if (accept(")")) {
      return items;
    }
    do {
      items.push(binary(1));
    } while (accept(","));
    expect(")");
    return items;
  };

  const binary = (lowest: number): Expression => {
    let left = primary();
    for (;;) {
      const token: Token | undefined = tokens[position];
      const precedence = token?.kind === "symbol" ? PRECEDENCE[token.text] : undefined;
      if (token?.kind !== "symbol" || precedence === undefined || precedence < lowest) {
        return left;
      }
      position++;
      const right = binary(token.text === "^" ? precedence : precedence + 1);
      left = { kind: "binary", operator: token.text, left, right };
    }
  };

  const expression = binary(1);
  if (position < tokens.length) {
    throw new FormulaError("text after the formula");
  }
  return expression;
}

/** Works out an expression; `lookup` gives the value of a cell, if it has one. */
export function evaluate(
  expression: Expression,
  lookup: (address: string) => number | undefined,
): number {
  switch (expression.kind) {
    case "number":
      return expression.value;
    case "cell":
      return lookup(expression.address) ?? 0;
    case "range":
      throw new FormulaError("a range is not a number");
    case "negate":
      return -evaluate(expression.operand, lookup);
    case "binary":
      return calculate(
        expression.operator,
        evaluate(expression.left, lookup),
        evaluate(expression.right, lookup),
      );
    case "call": {
      const apply = FUNCTIONS[expression.name];
      if (apply === undefined) {
        throw new FormulaError(`unknown function ${expression.name}`);
      }
      const values = expression.arguments.flatMap((argument) =>
        argument.kind === "range"
          ? argument.addresses.map(lookup).filter((value) => value !== undefined)
          : [evaluate(argument, lookup)],
      );
      return apply(values);
    }
  }
}

function calculate(operator: string, left: number, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      if (right === 0) {
        throw new FormulaError("division by zero");
      }
      return left / right;
    default:
      return left ** right;
  }
}

/** Lists the cells that an expression reads, each once. */
export function references(expression: Expression): Set<string> {
  switch (expression.kind) {
    case "number":
      return new Set();
    case "cell":
      return new Set([expression.address]);
    case "range":
      return new Set(expression.addresses);
    case "negate":
      return references(expression.operand);
    case "binary":
      return new Set([...references(expression.left), ...references(expression.right)]);
    case "call":
      return new Set(expression.arguments.flatMap((argument) => [...references(argument)]));
  }
}
