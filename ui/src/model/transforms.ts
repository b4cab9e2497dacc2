// Changes to trees that the user asks for one after another: each makes a new tree of the one before.

import { labelOf } from "../colours";
import type { Functions } from "./functions";
import { Builder, type Func, type Nodes } from "./tree";

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
  { kind: "f", menu: "Focus on function", chip: "focus", help: "only paths through the function, which begin with it" },
  { kind: "F", menu: "Focus on subtree", chip: "subtree", help: "only what lies below this one path" },
  { kind: "m", menu: "Merge function into callers", chip: "merged", help: "its own amount goes to whoever called it" },
  { kind: "M", menu: "Merge this node only", chip: "merged here", help: "as merge, on this one path" },
  { kind: "d", menu: "Drop paths with function", chip: "dropped", help: "paths through the function are left out" },
  { kind: "c", menu: "Collapse function", chip: "collapsed", help: "what it calls becomes its own" },
  { kind: "C", menu: "Collapse library", chip: "library", help: "calls within its assembly become one frame", of: ({ module }) => module },
  { kind: "r", menu: "Collapse recursion", chip: "recursion", help: "calls of itself become one" },
  { kind: "k", menu: "Merge all code of its kind", chip: "merged", help: "as merge, with all of the framework, of the runtime, of the kernel", of: kindOfCode },
  { kind: "K", menu: "Drop paths with code of its kind", chip: "dropped", help: "as drop: garbage collection, for instance, is left out", of: kindOfCode },
];

/** Changes that are about kinds of code rather than functions. */
export const PRESETS: { kind: Kind; label: string; help: string }[] = [
  { kind: "o", label: "just my code", help: "framework, runtime and native code is folded into the own code that calls it" },
  { kind: "w", label: "without waiting", help: "time in which threads waited is left out" },
];

/** A change as its chip says it. */
export function chipOf({ kind, path }: Transform, functions: Func[]): string {
  const about = KINDS.find((one) => one.kind === kind);
  return about ? `${about.chip} ${(about.of ?? nameOf)(functions[path[path.length - 1]])}` : PRESETS.find((one) => one.kind === kind)!.label;
}

/** What says that nothing of a node is kept. */
const GONE = -2;
/** What says that a node lies outside of what is focused on. */
const OUTSIDE = -1;

/** The tree that a change makes of another. */
export function changed(nodes: Nodes, transform: Transform, functions: Func[]): Nodes {
  const out = new Builder(functions.length);
  const map = new Int32Array(nodes.func.length);
  const step = stepOf(transform, nodes, functions, out);
  const focuses = transform.kind === "f" || transform.kind === "F";
  map[0] = focuses ? OUTSIDE : 0;
  if (!focuses) out.add(0, nodes.own[0], nodes.rest[0]);
  for (let node = 1; node < map.length; node++) {
    const up = map[nodes.parent[node]];
    map[node] = up === GONE ? GONE : step(node, up);
    if (map[node] >= 0) out.add(map[node], nodes.own[node], nodes.rest[node]);
  }
  return out.nodes;
}

type Step = (node: number, up: number) => number;

function stepOf({ kind, path }: Transform, nodes: Nodes, functions: Func[], out: Builder): Step {
  const func = path[path.length - 1];
  // A frame that stood for nameless code is all of that where it is not folded.
  const is = (other: number) => other === func || functions[other]?.library === func;
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
      return (node, up) => (functions[nodes.func[node]].code === "own" ? plain(node, up) : up);
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
