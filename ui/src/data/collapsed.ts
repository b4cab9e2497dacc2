// Collapsed stacks, which flame graph tools read: a path a line, its functions with semicolons, its own amount.

import { type CallTree, type Func, pathTo } from "../model/tree";

/** Characters at most: paths are written out whole, and deep trees have long ones. */
const MOST = 200_000_000;

export function collapsed(tree: CallTree, functions: Func[]): string {
  const lines: string[] = [];
  let characters = 0;
  for (let node = 1; node < tree.size && characters < MOST; node++) {
    if (tree.own[node] <= 0) continue;
    const line = `${pathTo(tree, node).map((func) => functions[func].label.replaceAll(";", ",")).join(";")} ${Math.round(tree.own[node])}`;
    characters += line.length + 1;
    lines.push(line);
  }
  return `${lines.join("\n")}\n`;
}
