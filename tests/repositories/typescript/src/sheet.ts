import { formatAddress, parseAddress } from "./address";
import { evaluate, Expression, parseFormula, references } from "./formula";
import { FormulaError } from "./tokens";

interface Cell {
  source: string;
  value: number | string;
  formula?: Expression;
}

/** Cells that hold numbers, texts and formulas over other cells. */
export class Sheet {
  private readonly cells = new Map<string, Cell>();
  private readonly readers = new Map<string, Set<string>>();

  /** Sets a cell from what was typed and recalculates what depends on it. */
  set(address: string, source: string): void {
    const key = formatAddress(parseAddress(address));
    const cell = this.read(source);
    const inputs = cell.formula ? references(cell.formula) : new Set<string>();
    if (inputs.has(key) || [...inputs].some((input) => this.dependents(key).includes(input))) {
      throw new FormulaError(`${key} would depend on itself`);
    }
    this.detach(key);
    this.cells.set(key, cell);
    for (const input of inputs) {
      const readers = this.readers.get(input) ?? new Set();
      this.readers.set(input, readers.add(key));
    }
    for (const changed of [key, ...this.dependents(key)]) {
      this.recalculate(changed);
    }
  }

  /** Returns the value of a cell, or an empty text. */
  get(address: string): number | string {
    return this.cells.get(formatAddress(parseAddress(address)))?.value ?? "";
  }

  /** Lists the cells that depend on a cell, each after those that it reads. */
  dependents(address: string): string[] {
    const order: string[] = [];
    const visited = new Set<string>();
    const visit = (key: string): void => {
      if (visited.has(key)) {
        return;
      }
      visited.add(key);
      for (const reader of this.readers.get(key) ?? []) {
        visit(reader);
      }
      order.unshift(key);
    };
    visit(address);
    return order.slice(1);
  }

  /** Lists the filled cells with their sources, in no particular order. */
  entries(): Array<[string, string]> {
    return [...this.cells].map(([address, cell]) => [address, cell.source]);
  }

  private read(source: string): Cell {
    const text = source.trim();
    if (text.startsWith("=")) {
      return { source, value: 0, formula: parseFormula(text.slice(1)) };
    }
    const number = Number(text);
    return { source, value: text === "" || Number.isNaN(number) ? text : number };
  }

  private detach(key: string): void {
    for (const readers of this.readers.values()) {
      readers.delete(key);
    }
  }

  private recalculate(key: string): void {
    const cell = this.cells.get(key);
    if (cell?.formula === undefined) {
      return;
    }
    try {
      cell.value = evaluate(cell.formula, (address) => this.number(address));
    } catch (error) {
      if (!(error instanceof FormulaError)) {
        throw error;
      }
      cell.value = `#ERROR: ${error.message}`;
    }
  }

  private number(address: string): number | undefined {
    const value = this.cells.get(address)?.value;
    if (typeof value === "string" && value.startsWith("#ERROR")) {
      throw new FormulaError(`error in ${address}`);
    }
    return typeof value === "number" ? value : undefined;
  }
}
