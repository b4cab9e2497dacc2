// Trees upside down: from the functions that have the amounts to their callers.

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

/** The inverted tree, level by level, as far as the steps last. */
export function inverted(tree: CallTree): Inverted {
  const nodes: Nodes = { func: [-1], parent: [-1], own: [0], rest: [0] };
  const first: Group = { node: 0, cursors: [], amounts: [] };
  for (let node = 1; node < tree.size; node++) {
    if (tree.own[node] > 0) {
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
    levels++;
  }
  return { nodes, wholeLevels: null };
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
