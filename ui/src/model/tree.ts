// Call trees: paths of functions with an amount of one measure. Nothing here recurses: a path may be 100,000 calls deep.

/** A function as all trees of a page know it, by its place in their list. */
export interface Func {
  /** Name with the part of the method that the code is: `Shop.Cart::Total (async)`. */
  label: string;
  signature: string;
  module: string;
  /** Kind of code, by which frames are coloured. */
  code: string;
  /** The function that stands for all nameless code of its library, where it is such code itself. */
  library?: number;
}

/** Whether a function stands for a type of objects, as the end of paths that allocated some. */
export const isType = (func: Func | undefined): boolean => func?.code === "type";

/** Nodes in the order in which they were made: a node stands behind its parent. Node 0 is the root. */
export interface Nodes {
  func: number[];
  parent: number[];
  /** The node's own amount. */
  own: number[];
  /** What lies below the node and is not in the tree. */
  rest: number[];
  /** The same by state, where states are known. */
  states?: NodeStates;
}

/** Own amounts of nodes, and what lies below them and is not in the tree, by state. */
export type NodeStates = { own: number[]; rest: number[] }[];

/** A tree that is shown: nodes in preorder, of siblings the largest first. Node 0 is the root, which has no function. */
export interface CallTree {
  size: number;
  func: Int32Array;
  parent: Int32Array;
  depth: Int32Array;
  /** The first node behind the subtree. */
  end: Int32Array;
  own: Float64Array;
  total: Float64Array;
  /** Where the node begins on a line that is as long as the root's total. */
  start: Float64Array;
  /** The node's place among those that the tree was made of. */
  from: Int32Array;
  /** Own amounts and totals by state, where states are known. */
  ownStates?: Float64Array[];
  states?: Float64Array[];
  maxDepth: number;
}

/** Makes trees by asking for the child of a node. */
export class Builder {
  readonly nodes: Nodes = { func: [-1], parent: [-1], own: [0], rest: [0] };
  private readonly children = new Map<number, number>();

  constructor(
    private readonly functions: number,
    states?: NodeStates,
  ) {
    if (states) this.nodes.states = states.map(() => ({ own: [0], rest: [0] }));
  }

  /** The child of `parent` that is `func`. */
  child(parent: number, func: number): number {
    const key = parent * this.functions + func;
    let node = this.children.get(key);
    if (node === undefined) {
      node = this.nodes.func.length;
      this.children.set(key, node);
      this.nodes.func.push(func);
      this.nodes.parent.push(parent);
      this.nodes.own.push(0);
      this.nodes.rest.push(0);
      for (const { own, rest } of this.nodes.states ?? []) {
        own.push(0);
        rest.push(0);
      }
    }
    return node;
  }

  add(node: number, own: number, rest: number): void {
    this.nodes.own[node] += own;
    this.nodes.rest[node] += rest;
  }

  /** Adds to what a node has of a state, which is a part of what it has. */
  addState(node: number, state: number, own: number, rest: number): void {
    const of = this.nodes.states![state];
    of.own[node] += own;
    of.rest[node] += rest;
  }

  /** Adds what a node of another tree has. */
  addNode(node: number, from: Nodes, at: number): void {
    this.add(node, from.own[at], from.rest[at]);
    from.states?.forEach(({ own, rest }, state) => {
      if (own[at] > 0 || rest[at] > 0) this.addState(node, state, own[at], rest[at]);
    });
  }
}

/** What nodes have with all below them. */
function sumsAlong({ parent }: Nodes, { own, rest }: { own: number[]; rest: number[] }): Float64Array {
  const sums = new Float64Array(parent.length);
  for (let node = parent.length - 1; node >= 0; node--) {
    sums[node] += own[node] + rest[node];
    if (node > 0) sums[parent[node]] += sums[node];
  }
  return sums;
}

/** Sums nodes up and puts them in order: those with most of `first` first, else the largest. */
export function arranged(nodes: Nodes, first: Float64Array | null = null): CallTree {
  const size = nodes.func.length;
  const sums = sumsAlong(nodes, nodes);
  const ofStates = nodes.states?.map((of) => sumsAlong(nodes, of));
  const children = childrenOf(nodes, size);
  const tree: CallTree = {
    size,
    func: new Int32Array(size),
    parent: new Int32Array(size),
    depth: new Int32Array(size),
    end: new Int32Array(size),
    own: new Float64Array(size),
    total: new Float64Array(size),
    start: new Float64Array(size),
    from: new Int32Array(size),
    maxDepth: 0,
    ...(ofStates ? { ownStates: ofStates.map(() => new Float64Array(size)), states: ofStates.map(() => new Float64Array(size)) } : {}),
  };
  const stack = [0];
  const parents = [-1];
  let at = 0;
  while (stack.length > 0) {
    const node = stack.pop()!;
    const parent = parents.pop()!;
    tree.from[at] = node;
    tree.func[at] = nodes.func[node];
    tree.parent[at] = parent;
    tree.depth[at] = parent < 0 ? 0 : tree.depth[parent] + 1;
    tree.own[at] = nodes.own[node];
    tree.total[at] = sums[node];
    ofStates?.forEach((of, state) => {
      tree.ownStates![state][at] = nodes.states![state].own[node];
      tree.states![state][at] = of[node];
    });
    tree.maxDepth = Math.max(tree.maxDepth, tree.depth[at]);
    const mine = children.subarrayOf(node).sort((a, b) => (first ? first[b] - first[a] : 0) || sums[b] - sums[a] || nodes.func[a] - nodes.func[b]);
    for (let last = mine.length - 1; last >= 0; last--) {
      stack.push(mine[last]);
      parents.push(at);
    }
    at++;
  }
  place(tree);
  return tree;
}

/** The children of each node, behind one another. */
function childrenOf(nodes: Nodes, size: number): { subarrayOf(node: number): Int32Array } {
  const first = new Int32Array(size + 1);
  for (let node = 1; node < size; node++) first[nodes.parent[node] + 1]++;
  for (let node = 0; node < size; node++) first[node + 1] += first[node];
  const next = first.slice();
  const all = new Int32Array(Math.max(0, size - 1));
  for (let node = 1; node < size; node++) all[next[nodes.parent[node]]++] = node;
  return { subarrayOf: (node) => all.subarray(first[node], first[node + 1]) };
}

/** Gives nodes their ends and the places where they begin. */
function place(tree: CallTree): void {
  const { size, parent, end, total, start } = tree;
  end.fill(0);
  for (let node = size - 1; node >= 0; node--) {
    end[node] = Math.max(end[node], node + 1);
    if (node > 0) end[parent[node]] = Math.max(end[parent[node]], end[node]);
  }
  const used = new Float64Array(size);
  for (let node = 1; node < size; node++) {
    const above = parent[node];
    start[node] = start[above] + used[above];
    used[above] += total[node];
  }
}

/** The nodes of another tree that stand at the paths of this one's; -1 where there is none. */
export function sameIn(tree: CallTree, other: CallTree): Int32Array {
  const children = new Map<string, number>();
  for (let node = 1; node < other.size; node++) children.set(`${other.parent[node]} ${other.func[node]}`, node);
  const same = new Int32Array(tree.size).fill(-1);
  same[0] = 0;
  for (let node = 1; node < tree.size; node++) {
    const above = same[tree.parent[node]];
    if (above >= 0) same[node] = children.get(`${above} ${tree.func[node]}`) ?? -1;
  }
  return same;
}

/** Whether something lies below a node that is not in the tree; with `anywhere` below it or any other. */
export function hidesPaths(tree: CallTree, node: number, anywhere = false): boolean {
  if (anywhere) return Array.from({ length: tree.size }, (_, one) => one).some((one) => hidesPaths(tree, one));
  let shown = tree.own[node];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) shown += tree.total[child];
  return tree.total[node] > shown * (1 + 1e-9);
}

/** Functions on the way from the root to a node, the outermost first. */
export function pathTo(tree: CallTree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.push(tree.func[at]);
  return path.reverse();
}

/** Sums of a function over a tree; recursion counts once. */
export interface Sums {
  own: Float64Array;
  total: Float64Array;
}

/** Own amounts and totals by function. What a method allocated is its own, also where its type is a node. */
export function sumsOf(tree: CallTree, functions: Func[]): Sums {
  const sums = { own: new Float64Array(functions.length), total: new Float64Array(functions.length) };
  const on = new Int32Array(functions.length);
  const path: number[] = [];
  for (let node = 1; node < tree.size; node++) {
    while (path.length >= tree.depth[node]) on[path.pop()!]--;
    const func = tree.func[node];
    sums.own[func] += tree.own[node];
    if (isType(functions[func]) && tree.parent[node] > 0) sums.own[tree.func[tree.parent[node]]] += tree.own[node];
    if (on[func] === 0) sums.total[func] += tree.total[node];
    on[func]++;
    path.push(func);
  }
  return sums;
}

/** What a function gets from each caller and hands to each callee, by function; -1 stands for the threads themselves. */
export interface Neighbours {
  callers: Map<number, number>;
  callees: Map<number, number>;
}

/** The callers and callees of a function; a pair that calls each other again below itself counts once. */
export function neighboursOf(tree: CallTree, wanted: number): Neighbours {
  const found: Neighbours = { callers: new Map(), callees: new Map() };
  const open = [new Map<number, number>(), new Map<number, number>()];
  const path: number[] = [];
  const enter = (side: number, other: number, total: number) => {
    const depth = open[side].get(other) ?? 0;
    const sums = side === 0 ? found.callers : found.callees;
    if (depth === 0) sums.set(other, (sums.get(other) ?? 0) + total);
    open[side].set(other, depth + 1);
  };
  const leave = (side: number, other: number) => open[side].set(other, (open[side].get(other) ?? 1) - 1);
  for (let node = 1; node < tree.size; node++) {
    while (path.length >= tree.depth[node]) {
      const left = path.pop()!;
      const above = tree.parent[left];
      if (tree.func[left] === wanted) leave(0, tree.func[above]);
      if (tree.func[above] === wanted) leave(1, tree.func[left]);
    }
    const above = tree.parent[node];
    if (tree.func[node] === wanted) enter(0, tree.func[above], tree.total[node]);
    if (above > 0 && tree.func[above] === wanted) enter(1, tree.func[node], tree.total[node]);
    path.push(node);
  }
  return found;
}
