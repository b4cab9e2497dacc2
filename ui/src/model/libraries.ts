// Rows of a table of functions in which all nameless code of a library is one row, as it is one frame of the trees.

import type { Section } from "../data/document";
import type { Func } from "./tree";

/** A library with the rows that it stands for. */
export interface Library {
  func: number;
  rows: number[];
}

/** The libraries of the nameless functions among the rows. */
export function librariesOf(functions: Func[], rowFunctions: Int32Array): Library[] {
  const all = new Map<number, Library>();
  rowFunctions.forEach((func, row) => {
    const { library } = functions[func] ?? {};
    if (library === undefined) return;
    const known = all.get(library);
    if (known) known.rows.push(row);
    else all.set(library, { func: library, rows: [row] });
  });
  return [...all.values()];
}

/** Sum of a column over the rows of a library. Own amounts add up; what has been called with others does not. */
export function sumOf(section: Section, key: string, { rows }: Library): number | undefined {
  const column = section.column(key);
  return column && rows.reduce((sum, row) => sum + column.number(row), 0);
}

/** Whether amounts of a column add up over functions. */
export const addsUp = (key: string, own: string): boolean => key === own || key === "self_samples";
