// The tree of a comparison: paths of both sides as one, each as wide as on the side that has more of it.

import type { Column, Measure, Section } from "../data/document";
import type { Functions } from "./functions";
import { arranged, type CallTree, type Nodes } from "./tree";

/** What became of a path. */
export interface Change {
  before: number;
  after: number;
  /** New, more, less, gone; or unclear, same: chance may have made the difference. */
  verdict: string;
  /** Growth as a part of what was before; null where there was nothing. */
  growth: number | null;
}

export interface ChangedTree {
  tree: CallTree;
  measure: Measure;
  /** What became of a node of the tree. */
  change(node: number): Change;
}

/** Endings of keys, by the unit of what they name. */
const UNITS = [["_ns", "time"], ["_bytes", "bytes"], ["", "count"]];

/** The tree of a section of paths; null where it has no columns of two sides. */
export function changedTree(section: Section, functions: Functions): ChangedTree | null {
  const column = (key: string) => section.column(key);
  const found = UNITS.find(([ending]) => column(`before${ending}`) && column(`after${ending}`));
  if (!found) return null;
  const [ending, unit] = found;
  const sides = (prefix: string): [Column, Column] | null => {
    const [before, after] = [column(`${prefix}before${ending}`), column(`${prefix}after${ending}`)];
    return before && after ? [before, after] : null;
  };
  const own = sides("")!;
  const whole = sides("total_") ?? own;
  const isTotal = whole !== own;
  const [growth, verdict] = isTotal ? [column("total_growth"), column("total_change")] : [column("growth"), column("change")];
  const most = ([before, after]: [Column, Column], row: number) => Math.max(before.number(row), after.number(row));

  const func = functions.of(section);
  const nodes: Nodes = { func: [-1], parent: [-1], own: [0], rest: [0] };
  const below = [0];
  const path: number[] = [0];
  for (let row = 0; row < section.rows; row++) {
    path.length = section.packed.depths[row] + 1;
    const parent = path[path.length - 1] ?? 0;
    nodes.func.push(func[row]);
    nodes.parent.push(parent);
    nodes.own.push(most(own, row));
    nodes.rest.push(0);
    below.push(0);
    if (isTotal) below[parent] += most(whole, row);
    path.push(row + 1);
  }
  // What lies below and is not here, because it is small or as it was.
  if (isTotal) for (let row = 0; row < section.rows; row++) nodes.rest[row + 1] = Math.max(0, most(whole, row) - nodes.own[row + 1] - below[row + 1]);
  const tree = arranged(nodes);
  const change = (node: number): Change => {
    const row = tree.from[node] - 1;
    const grown = growth?.value(row);
    return {
      before: whole[0].number(row),
      after: whole[1].number(row),
      verdict: String(verdict?.value(row) ?? "same"),
      growth: typeof grown === "number" ? grown : null,
    };
  };
  const title = section.packed.title?.replace(/^Paths by /, "") ?? "amount";
  return { tree, measure: { name: title, title, unit, own: own[0].key, total: whole[0].key }, change };
}
