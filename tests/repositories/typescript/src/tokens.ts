export type Token =
  | { kind: "number"; value: number }
  | { kind: "name"; text: string }
  | { kind: "symbol"; text: string };

/** Raised when a formula cannot be read or worked out. */
export class FormulaError extends Error {}

const PATTERN = /\s*(?:(\d+(?:\.\d+)?)|([A-Za-z]+\d*)|([-+*/^(),:]))/y;

/** Splits a formula, without its leading `=`, into tokens. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  const text = source.trimEnd();
  PATTERN.lastIndex = 0;
  while (PATTERN.lastIndex < text.length) {
    const start = PATTERN.lastIndex;
    const match = PATTERN.exec(text);
    if (match === null) {
      throw new FormulaError(`unexpected text at ${start}: ${text.slice(start).trim()}`);
    }
    if (match[1] !== undefined) {
      tokens.push({ kind: "number", value: Number(match[1]) });
    } else if (match[2] !== undefined) {
      tokens.push({ kind: "name", text: match[2].toUpperCase() });
    } else {
      tokens.push({ kind: "symbol", text: match[3] });
    }
  }
  return tokens;
}
