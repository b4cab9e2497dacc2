// Trees upside down: from the functions that have the amounts to their callers.

import { addInverted } from "./states";
import type { CallTree, Nodes } from "./tree";

/** Steps from callee to caller at most: a long recursion has as many as the square of its depth. */
const MOST_STEPS = 3_000_000;

export interface Inverted {
  nodes: Nodes;
  /** Levels that are whole; null where all are. */
  wholeLevels: number | null;
}

/** Members of a node of the inverted tree: nodes of the other, each with the amount that is followed upwards. */
interface Group {
  node: number;
  cursors: number[];
  amounts: number[];
}

/** Own amounts of functions that the tree does not have: they lie in the frame of what there is no room for. */
export interface Beside {
  /** By function. */
  own: Float64Array;
  /** The frame. */
  smaller: number;
}

/** What the tool says that functions have themselves, beyond what the tree has of them; at most as much as there is no room for. */
export function besideOf(tree: CallTree, exact: Float64Array, smaller: number): Beside {
  const own = exact.slice();
  let cut = 0;
  for (let node = 1; node < tree.size; node++) {
    if (tree.func[node] === smaller) cut += tree.own[node];
    else if (tree.func[node] < own.length) own[tree.func[node]] -= tree.own[node];
  }
  const sum = own.reduce((all, one) => all + Math.max(0, one), 0);
  const part = sum > cut ? cut / sum : 1;
  return { own: own.map((one) => Math.max(0, one) * part), smaller };
}

/** The inverted tree with times by state, where the other has them. */
export function invertedWithStates(tree: CallTree, functions: number, beside: Beside | null): Inverted {
  const found = inverted(tree, beside);
  const { ownStates } = tree;
  if (ownStates) addInverted(found.nodes, functions, (state) => inverted({ ...tree, own: ownStates[state] }, null).nodes);
  return found;
}

/** The inverted tree, level by level, as far as the steps last. `beside` are own amounts whose callers nobody knows here. */
export function inverted(tree: CallTree, beside: Beside | null = null): Inverted {
  const nodes: Nodes = { func: [-1], parent: [-1], own: [0], rest: [0] };
  const first: Group = { node: 0, cursors: [], amounts: [] };
  for (let node = 1; node < tree.size; node++) {
    if (tree.own[node] > 0 && tree.func[node] !== beside?.smaller) {
      first.cursors.push(node);
      first.amounts.push(tree.own[node]);
    }
  }
  let level = [first];
  let steps = 0;
  let levels = 0;
  while (level.length > 0) {
    const work = level.reduce((sum, group) => sum + group.cursors.length, 0);
    if (steps + work > MOST_STEPS) {
      // What is not followed further stays where it is.
      for (const group of level) nodes.rest[group.node] += group.amounts.reduce((a, b) => a + b, 0);
      return { nodes, wholeLevels: levels };
    }
    steps += work;
    level = level.flatMap((group) => below(group, tree, nodes));
    if (levels === 0 && beside) addBeside(tree, nodes, beside);
    levels++;
  }
  return { nodes, wholeLevels: null };
}

/** Adds amounts whose callers nobody knows: below each function, and what not even has a function. */
function addBeside(tree: CallTree, nodes: Nodes, { own, smaller }: Beside): void {
  const add = (func: number, parent: number, amount: number): number => {
    nodes.func.push(func);
    nodes.parent.push(parent);
    nodes.own.push(amount);
    nodes.rest.push(0);
    return nodes.func.length - 1;
  };
  const known = new Map(nodes.func.map((func, node) => [func, node] as const));
  let left = 0;
  for (let node = 1; node < tree.size; node++) if (tree.func[node] === smaller) left += tree.own[node];
  own.forEach((amount, func) => {
    if (amount <= 0) return;
    left -= amount;
    add(smaller, known.get(func) ?? add(func, 0, 0), amount);
  });
  if (left > tree.total[0] * 1e-9) add(smaller, 0, left);
}

/** The children of a group: its members' functions, each with their callers as members. */
function below(group: Group, tree: CallTree, nodes: Nodes): Group[] {
  const found = new Map<number, Group>();
  for (let at = 0; at < group.cursors.length; at++) {
    const cursor = group.cursors[at];
    if (cursor === 0) {
      nodes.own[group.node] += group.amounts[at];
      continue;
    }
    const func = tree.func[cursor];
    let child = found.get(func);
    if (!child) {
      child = { node: nodes.func.length, cursors: [], amounts: [] };
      found.set(func, child);
      nodes.func.push(func);
      nodes.parent.push(group.node);
      nodes.own.push(0);
      nodes.rest.push(0);
    }
    child.cursors.push(tree.parent[cursor]);
    child.amounts.push(group.amounts[at]);
  }
  return [...found.values()];
}
