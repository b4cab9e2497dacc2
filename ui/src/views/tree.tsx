// The call tree as a table with nodes that open.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, share } from "../data/format";
import { colourOf } from "../colours";
import { type CallTree, hidesPaths, sameIn } from "../model/tree";
import type { Shown } from "./shown";
import { ROW, useVirtual } from "./virtual";

/** Nodes that one key opens at most. */
const MOST_OPENED = 5_000;
/** Levels of indentation at most; further down a number says the depth. */
const MOST_INDENT = 40;
/** Nodes on the hottest path are opened as long as they have this part of the whole. */
const HOT = 0.2;

export function Tree({ shown }: { shown: Shown }) {
  const { tree, functions, measure, matching, state } = shown;
  const scroll = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<Set<number>>(() => hottest(tree));
  const [at, setAt] = useState(1);
  const nodes = useMemo(() => visible(tree, open), [tree, open]);
  const list = useVirtual(nodes.length, scroll);
  const whole = tree.total[0] || 1;
  const before = useRef({ tree, question: shown.question });
  useEffect(() => {
    const { tree: older, question } = before.current;
    before.current = { tree, question: shown.question };
    if (older === tree) return;
    if (question !== shown.question) {
      setOpen(hottest(tree));
      setAt(1);
      return;
    }
    // The same paths stay open where more of them has come.
    const same = sameIn(older, tree);
    setOpen((all) => new Set([...all].map((node) => same[node]).filter((node) => node > 0)));
    setAt((node) => Math.max(1, same[node] ?? 1));
  }, [tree]);

  const toggle = (node: number, to: boolean) => {
    if (to) shown.closer(node);
    const next = new Set(open);
    if (to) next.add(node);
    else next.delete(node);
    setOpen(next);
  };
  const go = (index: number) => {
    const node = nodes[Math.max(0, Math.min(nodes.length - 1, index))];
    if (node === undefined) return;
    setAt(node);
    shown.select(node);
    list.show(nodes.indexOf(node));
  };
  const hasChildren = (node: number) => tree.end[node] > node + 1 || (shown.canAsk && hidesPaths(tree, node));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = nodes.indexOf(at);
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? ROW) / ROW) - 2);
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(index + 1),
      ArrowUp: () => go(index - 1),
      PageDown: () => go(index + page),
      PageUp: () => go(index - page),
      Home: () => go(0),
      End: () => go(nodes.length - 1),
      ArrowRight: () => (hasChildren(at) && !open.has(at) ? toggle(at, true) : go(index + 1)),
      ArrowLeft: () => (open.has(at) ? toggle(at, false) : go(nodes.indexOf(tree.parent[at]))),
      Enter: () => toggle(at, !open.has(at)),
      "*": () => setOpen(openedBelow(tree, at, open)),
    };
    const action = actions[event.key];
    if (action) action();
    else if (!shown.key(at, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const of = (value: number) => amount(value, measure.unit);

  return (
    <div
      class="table tree"
      role="treegrid"
      aria-label={state.invert ? "Callers of the functions with the largest own amounts" : "Call tree"}
      aria-rowcount={nodes.length + 1}
      tabIndex={0}
      ref={scroll}
      onKeyDown={onKeyDown}
      aria-activedescendant={list.items.some((item) => nodes[item.index] === at) ? `node-${at}` : undefined}
    >
      <div class="table-inner" role="presentation" style={{ "min-width": "62ch" }}>
        <div role="rowgroup" class="table-head">
          <div role="row" class="table-row tree-row">
            <div role="columnheader" class="numeric"><span>{measure.title}</span></div>
            <div role="columnheader" class="numeric"><span>share</span></div>
            <div role="columnheader" class="numeric"><span>self</span></div>
            <div role="columnheader"><span>{state.invert ? "function, then its callers" : "function"}</span></div>
          </div>
        </div>
        <div role="rowgroup" class="table-body" style={{ height: `${list.height}px` }}>
          {list.items.map((item) => {
            const node = nodes[item.index];
            if (node === undefined) return null;
            const func = functions[tree.func[node]];
            const level = tree.depth[node];
            const part = tree.total[node] / whole;
            const isOpen = open.has(node);
            const isMatch = matching?.[tree.func[node]];
            return (
              <div
                role="row"
                id={`node-${node}`}
                key={node}
                class={`table-row tree-row${item.index % 2 ? " odd" : ""}${node === at ? " selected at" : ""}${matching && !isMatch ? " pale" : ""}`}
                style={{ top: `${item.start}px` }}
                aria-level={level}
                aria-rowindex={item.index + 2}
                aria-expanded={hasChildren(node) ? isOpen : undefined}
                aria-selected={node === at}
                onClick={() => {
                  setAt(node);
                  shown.select(node);
                }}
                onDblClick={() => toggle(node, !isOpen)}
                onContextMenu={(event) => {
                  event.preventDefault();
                  setAt(node);
                  shown.select(node);
                  shown.menu(node, event.clientX, event.clientY);
                }}
              >
                <div role="gridcell" class="numeric">{of(tree.total[node])}</div>
                <div role="gridcell" class="numeric"><span class="bar" style={{ width: `${Math.min(100, part * 100)}%` }} /><span class="cell-text">{share(part)}</span></div>
                <div role="gridcell" class="numeric">{tree.own[node] > 0 ? of(tree.own[node]) : ""}</div>
                <div role="gridcell" title={`${func.signature}\n${func.module}`}>
                  <span style={{ display: "inline-block", width: `${Math.min(level - 1, MOST_INDENT) * 1.1}em` }} />
                  {level > MOST_INDENT && <span class="faint">({level}) </span>}
                  <span
                    class="twisty"
                    aria-hidden="true"
                    onClick={(event) => {
                      event.stopPropagation();
                      toggle(node, !isOpen);
                    }}
                  >
                    {hasChildren(node) ? (isOpen ? "▾" : "▸") : ""}
                  </span>
                  <span class="mark" style={{ background: colourOf(func.code) }} />
                  <span class="cell-text">{isMatch ? <mark>{func.label}</mark> : func.label}</span>
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
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
