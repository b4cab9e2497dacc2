// Changes to trees that the user asks for one after another: each makes a new tree of the one before.

import { labelOf } from "../colours";
import { type Exact, isCut } from "./cut";
import type { Functions } from "./functions";
import { UNKNOWN } from "./states";
import { Builder, type Func, isType, type Nodes } from "./tree";

/** Letters of the keys, as Firefox Profiler has them. */
export type Kind = "f" | "F" | "m" | "M" | "d" | "c" | "C" | "r" | "k" | "K" | "o" | "w";

export interface Transform {
  kind: Kind;
  /** A function, or the path to a node for `F` and `M`; nothing for `o` and `w`. */
  path: number[];
}

const nameOf = ({ label }: Func) => label;
const kindOfCode = ({ code }: Func) => labelOf(code);

/** Every kind with what menus say, the words before a chip's name, and that name. */
export const KINDS: { kind: Kind; menu: string; chip: string; help: string; of?(func: Func): string }[] = [
  { kind: "f", menu: "Focus on function", chip: "focus", help: "only paths through the function, starting with it" },
  { kind: "F", menu: "Focus on subtree", chip: "subtree", help: "only what is below this one path" },
  { kind: "m", menu: "Merge function into callers", chip: "merged", help: "its own amount counts for its callers" },
  { kind: "M", menu: "Merge this node only", chip: "merged here", help: "as merge, but only on this path" },
  { kind: "d", menu: "Drop paths with function", chip: "dropped", help: "paths through the function are left out" },
  { kind: "c", menu: "Collapse function", chip: "collapsed", help: "what it calls becomes its own" },
  { kind: "C", menu: "Collapse library", chip: "library", help: "calls within its assembly become one frame", of: ({ module }) => module },
  { kind: "r", menu: "Collapse recursion", chip: "recursion", help: "calls of itself become one" },
  { kind: "k", menu: "Merge all code of its kind", chip: "merged", help: "as merge, for all code of the framework, the runtime or the kernel", of: kindOfCode },
  { kind: "K", menu: "Drop paths with code of its kind", chip: "dropped", help: "as drop, for all code of its kind, such as garbage collection", of: kindOfCode },
];

/** Changes that are about kinds of code rather than functions. */
export const PRESETS: { kind: Kind; label: string; help: string }[] = [
  { kind: "o", label: "just my code", help: "framework, runtime and native code is folded into the own code that calls it" },
  { kind: "w", label: "without waiting", help: "time of waiting threads is left out" },
];

/** A change as its chip says it. */
export function chipOf({ kind, path }: Transform, functions: Func[]): string {
  const about = KINDS.find((one) => one.kind === kind);
  return about ? `${about.chip} ${(about.of ?? nameOf)(functions[path[path.length - 1]])}` : PRESETS.find((one) => one.kind === kind)!.label;
}

/** Changes that would have to know what lies below the frame of what there is no room for: it stays, and may be too much. */
export const ASKS_FOR_ALL: Kind[] = ["f", "F", "d", "K", "w"];

/** What says that nothing of a node is kept. */
const GONE = -2;
/** What says that a node lies outside of what is focused on. */
const OUTSIDE = -1;

/** The tree that a change makes of another; `exact` is what is known of the functions of that one, whatever paths it has. */
export function changed(nodes: Nodes, transform: Transform, functions: Func[], exact: Exact | null = null): Nodes {
  const out = new Builder(functions.length, nodes.states);
  const map = new Int32Array(nodes.func.length);
  const step = stepOf(transform, nodes, functions, out);
  const focuses = transform.kind === "f" || transform.kind === "F";
  map[0] = focuses ? OUTSIDE : 0;
  if (!focuses) out.addNode(0, nodes, 0);
  const smaller = smallerOf(transform, nodes, functions, out);
  for (let node = 1; node < map.length; node++) {
    const up = map[nodes.parent[node]];
    map[node] = up === GONE ? GONE : isCut(functions, nodes.func[node]) ? smaller(node, up) : step(node, up);
    if (map[node] >= 0) out.addNode(map[node], nodes, node);
  }
  const whole = exact && wholeOf(nodes, transform, exact);
  if (whole !== null) putRight(out, whole, transform.kind === "d", functions);
  return out.nodes;
}

/** What all paths together have after a change; null where only they could tell. */
function wholeOf(nodes: Nodes, { kind, path }: Transform, exact: Exact): number | null {
  const total = exact.total[path[0]] ?? -1;
  if (total < 0 || (kind !== "f" && kind !== "d")) return null;
  return kind === "f" ? total : Math.max(0, nodes.own.reduce((sum, own) => sum + own, 0) - total);
}

/** Makes the sum of a tree what it is known to be: by the frame of what there is no room for, of which there is one alone where it is not
 * known below which paths some of it is to be left out. */
function putRight(out: Builder, whole: number, alone: boolean, functions: Func[]): void {
  const { nodes } = out;
  let [sum, smaller] = [0, -1];
  nodes.func.forEach((func, node) => {
    if (isCut(functions, func)) {
      smaller = func;
      if (alone || nodes.parent[node] === 0) {
        nodes.own[node] = 0;
        for (const { own } of nodes.states ?? []) own[node] = 0;
      }
    }
    sum += nodes.own[node];
  });
  if (smaller < 0) return;
  const [node, missing] = [out.child(0, smaller), Math.max(0, whole - sum)];
  nodes.own[node] += missing;
  if (nodes.states) out.addState(node, UNKNOWN, missing, 0);
}

/** Whether it is known what a change leaves of everything. */
export const isExact = ({ kind, path }: Transform, exact: Exact | null): boolean =>
  !ASKS_FOR_ALL.includes(kind) || ((kind === "f" || kind === "d") && exact !== null && exact.total[path[0]] >= 0);

type Step = (node: number, up: number) => number;

/** Whether a function is another, or one of those that it stands for: nameless code that is not folded. */
const isOrWithin = (functions: Func[], func: number, wanted: number): boolean => func === wanted || functions[func]?.library === wanted;

/** What becomes of a frame of what there is no room for. */
function smallerOf({ kind, path }: Transform, nodes: Nodes, functions: Func[], out: Builder): Step {
  const func = (node: number) => nodes.func[node];
  if (kind === "f") return (node, up) => out.child(Math.max(0, up), func(node));
  if (kind === "F") {
    // The path goes on in what is missing beside it, of other threads, and nowhere else.
    const isAbove = pathAbove(nodes, path);
    return (node, up) => (up !== OUTSIDE ? out.child(up, func(node)) : isAbove(nodes.parent[node]) ? out.child(0, func(node)) : OUTSIDE);
  }
  if (kind === "c") return (node, up) => (up > 0 && isOrWithin(functions, out.nodes.func[up], path[path.length - 1]) ? up : out.child(up, func(node)));
  return (node, up) => out.child(up, func(node));
}

function stepOf({ kind, path }: Transform, nodes: Nodes, functions: Func[], out: Builder): Step {
  const func = path[path.length - 1];
  const is = (other: number) => isOrWithin(functions, other, func);
  const isOfKind = (other: number) => kindOfCode(functions[other]) === kindOfCode(functions[func]);
  const plain: Step = (node, up) => out.child(up, nodes.func[node]);
  switch (kind) {
    case "f":
      return (node, up) => (up !== OUTSIDE ? plain(node, up) : is(nodes.func[node]) ? plain(node, 0) : OUTSIDE);
    case "F": {
      const isThere = onPath(nodes, path);
      return (node, up) => (up !== OUTSIDE ? plain(node, up) : isThere(node) ? plain(node, 0) : OUTSIDE);
    }
    case "m":
      return (node, up) => (is(nodes.func[node]) ? up : plain(node, up));
    case "M": {
      const isThere = onPath(nodes, path);
      return (node, up) => (isThere(node) ? up : plain(node, up));
    }
    case "d":
      return (node, up) => (is(nodes.func[node]) ? GONE : plain(node, up));
    case "c":
      return (node, up) => (up > 0 && is(out.nodes.func[up]) ? up : plain(node, up));
    case "C": {
      const library = functions[func]?.module;
      const isOfIt = (func: number) => functions[func]?.module === library;
      return (node, up) => (up > 0 && isOfIt(nodes.func[node]) && isOfIt(out.nodes.func[up]) ? up : plain(node, up));
    }
    case "k":
      return (node, up) => (isOfKind(nodes.func[node]) ? up : plain(node, up));
    case "K":
      return (node, up) => (isOfKind(nodes.func[node]) ? GONE : plain(node, up));
    case "r":
      return recursion(nodes, is, plain);
    case "w":
      return (node, up) => (functions[nodes.func[node]].code === "waiting" ? GONE : plain(node, up));
    case "o":
      return (node, up) => (functions[nodes.func[node]].code === "own" || isType(functions[nodes.func[node]]) ? plain(node, up) : up);
  }
}

/** Calls of a function below itself become the outermost one. */
function recursion(nodes: Nodes, isFunc: (func: number) => boolean, plain: Step): Step {
  const outermost = new Int32Array(nodes.func.length);
  return (node, up) => {
    const above = outermost[nodes.parent[node]];
    const is = isFunc(nodes.func[node]);
    const target = is && above > 0 ? above : plain(node, up);
    outermost[node] = above > 0 ? above : is ? target : 0;
    return target;
  };
}

/** Whether a node is one above the end of a path. */
function pathAbove(nodes: Nodes, path: number[]): (node: number) => boolean {
  return (node) => {
    const way: number[] = [];
    for (let at = node; at > 0; at = nodes.parent[at]) way.push(nodes.func[at]);
    return way.length < path.length && way.reverse().every((func, at) => func === path[at]);
  };
}

/** Whether a node is the one at the end of a path; asked for nodes in order. */
function onPath(nodes: Nodes, path: number[]): (node: number) => boolean {
  const matched = new Int32Array(nodes.func.length).fill(-1);
  matched[0] = 0;
  return (node) => {
    const above = matched[nodes.parent[node]];
    if (above >= 0 && above < path.length && nodes.func[node] === path[above]) matched[node] = above + 1;
    return matched[node] === path.length;
  };
}

/** Transforms as addresses have them: `f12,F1.5.9`, functions by what addresses call them. */
export const written = (all: Transform[], functions: Functions): string =>
  all.map(({ kind, path }) => kind + path.map((func) => functions.id(func)).join(".")).join(",");

/** Transforms of an address; what makes no sense is left out. */
export function parsed(text: string, functions: Functions): Transform[] {
  const all: Transform[] = [];
  for (const part of text.split(",")) {
    const kind = part[0] as Kind;
    const path = part.slice(1) === "" ? [] : part.slice(1).split(".").map((id) => functions.number(Number(id)) ?? -1);
    const isKnown = kind === "o" || kind === "w" ? path.length === 0 : KINDS.some((one) => one.kind === kind) && path.length > 0;
    if (isKnown && path.every((func) => func >= 0)) all.push({ kind, path });
  }
  return all;
}
