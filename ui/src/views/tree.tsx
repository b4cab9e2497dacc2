// The call tree as a table with nodes that open.

import { useMemo, useState } from "preact/hooks";
import { amount } from "../data/format";
import { codeColour } from "../colours";
import { type CallTree, hidesPaths, sameIn } from "../model/tree";
import type { Shown } from "./shown";
import { TreeTable } from "./treetable";

/** Nodes that one key opens at most. */
const MOST_OPENED = 5_000;
/** Nodes on the hottest path are opened as long as they have this part of the whole. */
const HOT = 0.2;

export function Tree({ shown }: { shown: Shown }) {
  const { tree, functions, measure, matching, state } = shown;
  const { question } = shown;
  const [before, setLook] = useState<Look>(() => begun(tree, question));
  // What is open is known by number, so a tree must not be drawn with what was open in another, not even once.
  const look = useMemo(() => carried(before, tree, question), [before, tree, question]);
  const { open, at } = look;
  const change = (to: (now: Look) => Partial<Look>) =>
    setLook((last) => {
      const now = carried(last, tree, question);
      return { ...now, ...to(now) };
    });
  const nodes = useMemo(() => visible(tree, open), [tree, open]);
  const whole = tree.total[0] || 1;

  const toggle = (node: number, to: boolean) => {
    if (to) shown.closer(node);
    change(({ open }) => {
      const next = new Set(open);
      if (to) next.add(node);
      else next.delete(node);
      return { open: next };
    });
  };
  const select = (node: number) => {
    change(() => ({ at: node }));
    shown.select(node);
  };
  const onKey = (event: KeyboardEvent): boolean => {
    if (event.key !== "*") return shown.key(at, event);
    change(({ open, at }) => ({ open: openedBelow(tree, at, open) }));
    return true;
  };
  const of = (value: number) => amount(value, measure.unit);
  const row = (node: number) => {
    const func = functions[tree.func[node]];
    const isMatch = matching?.[tree.func[node]];
    return {
      amount: of(tree.total[node]),
      part: tree.total[node] / whole,
      more: tree.own[node] > 0 ? of(tree.own[node]) : "",
      level: tree.depth[node] - 1,
      colour: codeColour(measure.name, func.code),
      name: isMatch ? <mark>{func.label}</mark> : func.label,
      title: `${func.signature}\n${func.module}`,
      isPale: matching !== null && !isMatch,
    };
  };
  return (
    <TreeTable
      label={state.invert ? "Callers of the functions with the largest own amounts" : "Call tree"}
      headings={[measure.title, "share", "self", state.invert ? "function, then its callers" : "function"]}
      id="node"
      nodes={nodes}
      at={at}
      row={row}
      parent={(node) => tree.parent[node]}
      hasChildren={(node) => tree.end[node] > node + 1 || (shown.canAsk && hidesPaths(tree, node))}
      isOpen={(node) => open.has(node)}
      toggle={toggle}
      onDouble={(node) => shown.toSource(tree.func[node])}
      select={select}
      menu={(node, x, y) => shown.menu(node, x, y)}
      onKey={onKey}
    />
  );
}

/** What is looked at of a tree. */
interface Look {
  tree: CallTree;
  question: string;
  open: Set<number>;
  /** The node that is selected. */
  at: number;
}

const begun = (tree: CallTree, question: string): Look => ({ tree, question, open: hottest(tree), at: 1 });

/** The same look at another tree: the same paths stay open where more of them has come, and another question starts over. */
function carried(look: Look, tree: CallTree, question: string): Look {
  if (look.tree === tree) return look;
  if (look.question !== question) return begun(tree, question);
  const same = sameIn(look.tree, tree);
  const open = new Set([...look.open].map((node) => same[node]).filter((node) => node > 0));
  return { tree, question, open, at: Math.max(1, same[look.at] ?? 1) };
}

/** The nodes whose parents are all open, in order. */
function visible(tree: CallTree, open: Set<number>): number[] {
  const nodes: number[] = [];
  let node = 1;
  while (node < tree.size) {
    nodes.push(node);
    node = open.has(node) ? node + 1 : tree.end[node];
  }
  return nodes;
}

/** The path of the largest children. */
function hottest(tree: CallTree): Set<number> {
  const open = new Set<number>();
  let node = 1;
  while (node < tree.size && tree.total[node] > HOT * tree.total[0] && open.size < 60) {
    open.add(node);
    if (tree.end[node] === node + 1) break;
    node++;
  }
  return open;
}

/** All below a node opened, as far as that many can be looked at. */
function openedBelow(tree: CallTree, node: number, open: Set<number>): Set<number> {
  const next = new Set(open);
  for (let at = node; at < tree.end[node] && next.size < MOST_OPENED; at++) if (tree.end[at] > at + 1) next.add(at);
  return next;
}
