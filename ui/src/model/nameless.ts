// Nameless code: functions of native libraries of which only places are known, `libcoreclr.so+0x1234`. Those of a library that
// call one another are folded into one frame, as nobody can tell them apart.

import { Builder, type Func, type Nodes } from "./tree";

/** The function that a frame is shown as. */
const shownAs = (functions: Func[], func: number): number => functions[func]?.library ?? func;

/** Whether there is anything to fold. */
export const hasNameless = (functions: Func[]): boolean => functions.some((one) => one.library !== undefined);

/** The tree with nameless code folded. */
export function folded(nodes: Nodes, functions: Func[]): Nodes {
  const out = new Builder(functions.length, nodes.states);
  const map = new Int32Array(nodes.func.length);
  out.addNode(0, nodes, 0);
  for (let node = 1; node < map.length; node++) {
    const up = map[nodes.parent[node]];
    const func = shownAs(functions, nodes.func[node]);
    map[node] = isWithin(functions, nodes, node, out.nodes.func[up]) ? up : out.child(up, func);
    out.addNode(map[node], nodes, node);
  }
  return out.nodes;
}

/** Whether a node is folded into the frame above it. */
const isWithin = (functions: Func[], nodes: Nodes, node: number, above: number): boolean => {
  const { library } = functions[nodes.func[node]];
  return library !== undefined && library === above;
};

/** A path of functions as it is with nameless code folded. */
export function foldedPath(path: number[], functions: Func[]): number[] {
  const all: number[] = [];
  for (const func of path) {
    const { library } = functions[func] ?? {};
    if (library === undefined || all[all.length - 1] !== library) all.push(library ?? func);
  }
  return all;
}

/** The paths of the nodes that a path of the folded tree stands for, those with the largest amounts first, at most so many. */
export function pathsWithin(nodes: Nodes, functions: Func[], path: number[], most: number): number[][] {
  const size = nodes.func.length;
  const sums = new Float64Array(size);
  for (let node = size - 1; node > 0; node--) {
    sums[node] += nodes.own[node] + nodes.rest[node];
    sums[nodes.parent[node]] += sums[node];
  }
  // How much of the path each node ends; -1 for nodes beside it.
  const ended = new Int32Array(size).fill(-1);
  ended[0] = 0;
  const found: number[] = [];
  for (let node = 1; node < size; node++) {
    const above = ended[nodes.parent[node]];
    if (above < 0) continue;
    if (above > 0 && isWithin(functions, nodes, node, path[above - 1])) ended[node] = above;
    else if (above < path.length && shownAs(functions, nodes.func[node]) === path[above]) ended[node] = above + 1;
    if (ended[node] === path.length && above < path.length) found.push(node);
  }
  found.sort((a, b) => sums[b] - sums[a]);
  return found.slice(0, most).map((node) => {
    const way: number[] = [];
    for (let at = node; at > 0; at = nodes.parent[at]) way.push(nodes.func[at]);
    return way.reverse();
  });
}
