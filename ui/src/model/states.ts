// Times by state: what of the time of each path its threads ran, waited, and for what. The tool says the states; here they are summed.

import type { CallTree, Func, Nodes, NodeStates } from "./tree";

/** Names of states, in the order of the tool. */
export const STATE_NAMES = ["running", "ready", "lock", "task", "waiting", "io", "sleeping", "suspended", "idle", "unknown"];
const IDLE = STATE_NAMES.indexOf("idle");
export const UNKNOWN = STATE_NAMES.indexOf("unknown");

/** No node yet, of as many states as there are. */
export const noStates = (): NodeStates => STATE_NAMES.map(() => ({ own: [0], rest: [0] }));

/** Places of the states with these names. */
export const placesOf = (names: string[]): number[] => names.map((name) => STATE_NAMES.indexOf(name)).filter((place) => place >= 0);

/** Times of all nodes by state; null where states are not known. */
export function timesByState(nodes: Nodes | null): number[] | null {
  if (!nodes?.states) return null;
  const sum = (all: number[]) => all.reduce((sum, one) => sum + one, 0);
  return nodes.states.map(({ own, rest }) => sum(own) + sum(rest));
}

/** The tree with times in some states alone. */
export function inStates(nodes: Nodes, names: string[]): Nodes {
  if (!nodes.states || names.length === 0) return nodes;
  const wanted = new Set(placesOf(names));
  const none = nodes.func.map(() => 0);
  const states = nodes.states.map((one, state) => (wanted.has(state) ? one : { own: none, rest: none }));
  const sum = (of: "own" | "rest") => nodes.func.map((_, node) => states.reduce((sum, one) => sum + one[of][node], 0));
  return { ...nodes, own: sum("own"), rest: sum("rest"), states };
}

/** The inverted tree of each state, added to that of all: by the same paths. */
export function addInverted(nodes: Nodes, size: number, ofState: (state: number) => Nodes): void {
  const key = (parent: number, func: number) => parent * size + func;
  const places = new Map<number, number>();
  for (let node = 1; node < nodes.func.length; node++) places.set(key(nodes.parent[node], nodes.func[node]), node);
  nodes.states = STATE_NAMES.map((_, state) => {
    const [own, rest] = [nodes.func.map(() => 0), nodes.func.map(() => 0)];
    const from = ofState(state);
    const map = new Int32Array(from.func.length);
    for (let node = 0; node < map.length; node++) {
      const up = node > 0 ? map[from.parent[node]] : 0;
      const known = node > 0 ? places.get(key(up, from.func[node])) : 0;
      // What all states together had no steps left for has no node of its own.
      map[node] = known ?? up;
      if (known === undefined) rest[up] += from.own[node] + from.rest[node];
      else {
        own[known] += from.own[node];
        rest[known] += from.rest[node];
      }
    }
    return { own, rest };
  });
}

/** How much of each node's time lies on paths with own code, and is no idle thread's: those with most come first. */
export function ofOwnCode(nodes: Nodes, functions: Func[]): Float64Array | null {
  const { states } = nodes;
  if (!states) return null;
  const size = nodes.func.length;
  const isBelowOwn = new Uint8Array(size);
  for (let node = 1; node < size; node++) isBelowOwn[node] = functions[nodes.func[node]]?.code === "own" ? 1 : isBelowOwn[nodes.parent[node]];
  const sums = new Float64Array(size);
  for (let node = size - 1; node > 0; node--) {
    if (isBelowOwn[node]) sums[node] += nodes.own[node] + nodes.rest[node] - states[IDLE].own[node] - states[IDLE].rest[node];
    sums[nodes.parent[node]] += sums[node];
  }
  return sums;
}

/** The states of a node with their parts, in order; what no state is known of is unknown. */
export function partsOf(tree: CallTree, node: number): { state: number; ns: number }[] {
  if (!tree.states) return [];
  const parts = tree.states.map((of, state) => ({ state, ns: of[node] }));
  return parts.filter(({ ns }) => ns > 0);
}
