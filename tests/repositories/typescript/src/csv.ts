import { formatAddress, parseAddress } from "./address";
import { Sheet } from "./sheet";

/** Quotes a field if it holds a comma, a quote or a line break. */
export function quoteField(field: string): string {
  return /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

/** Writes the values of a sheet, from A1 to the last filled row and column. */
export function toCsv(sheet: Sheet): string {
  const filled = sheet.entries().map(([address]) => parseAddress(address));
  const rows = Math.max(0, ...filled.map(({ row }) => row + 1));
  const columns = Math.max(0, ...filled.map(({ column }) => column + 1));
  const lines: string[] = [];
  for (let row = 0; row < rows; row++) {
    const fields: string[] = [];
    for (let column = 0; column < columns; column++) {
      fields.push(quoteField(String(sheet.get(formatAddress({ column, row })))));
    }
    lines.push(fields.join(","));
  }
  return lines.join("\n");
}
