// Paths that a page has no room for. Nobody here knows what they are, but how much they have in all is known: a frame stands for
// them in the picture, so that its sums are those of the recording, whatever is changed of it.

import { Builder, type CallTree, type Func, type Nodes } from "./tree";

/** Kind of code of the frame, which no function has. */
export const CUT = "cut";

/** The frame. */
export const SMALLER: Func = {
  label: "(smaller: open with clrscope view)",
  signature: "paths that are too small for this page; clrscope view shows all of them",
  module: "",
  code: CUT,
};

/** Whether a function is the frame of what there is no room for. */
export const isCut = (functions: Func[], func: number): boolean => functions[func]?.code === CUT;

/** The tree with a frame for what lies below its nodes and is not there. */
export function withSmaller(nodes: Nodes, functions: Func[], smaller: number): Nodes {
  const out = new Builder(functions.length, nodes.states);
  const map = new Int32Array(nodes.func.length);
  for (let node = 0; node < map.length; node++) {
    if (node > 0) map[node] = out.child(map[nodes.parent[node]], nodes.func[node]);
    out.add(map[node], nodes.own[node], 0);
    nodes.states?.forEach(({ own }, state) => out.addState(map[node], state, own[node], 0));
  }
  for (let node = 0; node < map.length; node++) {
    if (nodes.rest[node] <= 0) continue;
    const cut = out.child(map[node], smaller);
    out.add(cut, nodes.rest[node], 0);
    nodes.states?.forEach(({ rest }, state) => out.addState(cut, state, rest[node], 0));
  }
  return out.nodes;
}

/** Amount of the frames of what there is no room for. */
export function cutOf(tree: CallTree, functions: Func[]): number {
  let sum = 0;
  for (let node = 1; node < tree.size; node++) if (isCut(functions, tree.func[node])) sum += tree.own[node];
  return sum;
}

/** What the tool says of all functions, those included that the page has no paths of. */
export interface Exact {
  own: Float64Array;
  /** Own amounts and those of everything below, of functions of which that is known; -1 for others. */
  total: Float64Array;
}
