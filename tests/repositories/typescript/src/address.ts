/** The place of a cell, with the column and the row counted from zero. */
export interface Address {
  column: number;
  row: number;
}

const LETTERS = 26;

/** Returns the letters of a column: `A` to `Z`, then `AA` and so on. */
export function columnName(column: number): string {
  let name = "";
  for (let rest = column + 1; rest > 0; rest = Math.floor((rest - 1) / LETTERS)) {
    name = String.fromCharCode(65 + ((rest - 1) % LETTERS)) + name;
  }
  return name;
}

/** Reads an address such as `B7`; letters may be in either case. */
export function parseAddress(text: string): Address {
  const match = /^([A-Z]+)([1-9]\d*)$/.exec(text.trim().toUpperCase());
  if (match === null) {
    throw new RangeError(`not an address: ${text}`);
  }
  let column = 0;
  for (const letter of match[1]) {
    column = column * LETTERS + (letter.charCodeAt(0) - 64);
  }
  return { column: column - 1, row: Number(match[2]) - 1 };
}

/** Writes an address such as `B7`. */
export function formatAddress({ column, row }: Address): string {
  return `${columnName(column)}${row + 1}`;
}

/** Lists the addresses between two corners, row by row, in any order of corners. */
export function expandRange(first: string, last: string): string[] {
  const [a, b] = [parseAddress(first), parseAddress(last)];
  const addresses: string[] = [];
  for (let row = Math.min(a.row, b.row); row <= Math.max(a.row, b.row); row++) {
    for (
      let column = Math.min(a.column, b.column);
      column <= Math.max(a.column, b.column);
      column++
    ) {
      addresses.push(formatAddress({ column, row }));
    }
  }
  return addresses;
}
