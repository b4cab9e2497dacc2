// A table of nodes that open, of which only the rows in sight are made: what call tree and dominators have in common.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { share } from "../data/format";
import { Share } from "./table";
import { ROW, useVirtual } from "./virtual";

/** Levels of indentation at most; further down a number says the depth. */
const MOST_INDENT = 40;

/** A row as it is shown. */
export interface TreeRow {
  /** Amount, its part of the whole, and a further number. */
  amount: string;
  part: number;
  more: string;
  /** Depth, from 0. */
  level: number;
  colour: string;
  name: ComponentChildren;
  title: string;
  isPale: boolean;
}

interface Props {
  label: string;
  /** Headings of amount, share, number and name. */
  headings: [string, string, string, string];
  /** Name of the rows' elements, in front of the node's number. */
  id: string;
  /** Nodes whose parents are all open, in order. */
  nodes: number[];
  /** The node that is looked at. */
  at: number;
  row(node: number): TreeRow;
  parent(node: number): number;
  hasChildren(node: number): boolean;
  isOpen(node: number): boolean;
  toggle(node: number, to: boolean): void;
  /** Follows a double click, in place of opening the node; whether it meant anything. */
  onDouble?(node: number): boolean;
  select(node: number): void;
  /** Opens a menu. */
  menu?(node: number, x: number, y: number): void;
  /** A key that says nothing about rows; whether it meant anything. */
  onKey?(event: KeyboardEvent): boolean;
}

export function TreeTable(props: Props) {
  const { nodes, at, id, headings, hasChildren, isOpen, toggle, select } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const list = useVirtual(nodes.length, scroll);
  const place = nodes.indexOf(at);
  const narrow = innerWidth < 600;
  // Also where the nodes above have only just been opened.
  useEffect(() => {
    if (place >= 0) list.show(place);
  }, [at, place >= 0]);
  const go = (index: number) => {
    const node = nodes[Math.max(0, Math.min(nodes.length - 1, index))];
    if (node !== undefined) select(node);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? ROW) / ROW) - 2);
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(place + 1),
      ArrowUp: () => go(place - 1),
      PageDown: () => go(place + page),
      PageUp: () => go(place - page),
      Home: () => go(0),
      End: () => go(nodes.length - 1),
      ArrowRight: () => (hasChildren(at) && !isOpen(at) ? toggle(at, true) : go(place + 1)),
      ArrowLeft: () => (isOpen(at) ? toggle(at, false) : go(nodes.indexOf(props.parent(at)))),
      Enter: () => toggle(at, !isOpen(at)),
    };
    const action = actions[event.key];
    if (action) action();
    else if (!props.onKey?.(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="table tree"
      role="treegrid"
      aria-label={props.label}
      aria-rowcount={nodes.length + 1}
      tabIndex={0}
      ref={scroll}
      onKeyDown={onKeyDown}
      aria-activedescendant={list.items.some((item) => nodes[item.index] === at) ? `${id}-${at}` : undefined}
    >
      <div class="table-inner" role="presentation" style={{ "min-width": narrow ? "66ch" : "70ch" }}>
        <div role="rowgroup" class="table-head">
          <div role="row" class="table-row tree-row">
            {headings.map((heading, column) => <div role="columnheader" class={column < 3 ? "numeric" : undefined} key={column}><span>{heading}</span></div>)}
          </div>
        </div>
        <div role="rowgroup" class="table-body" style={{ height: `${list.height}px` }}>
          {list.items.map((item) => {
            const node = nodes[item.index];
            if (node === undefined) return null;
            const row = props.row(node);
            return (
              <div
                role="row"
                id={`${id}-${node}`}
                key={node}
                class={`table-row tree-row${item.index % 2 ? " odd" : ""}${node === at ? " selected at" : ""}${row.isPale ? " pale" : ""}`}
                style={{ top: `${item.start}px` }}
                aria-level={row.level + 1}
                aria-rowindex={item.index + 2}
                aria-expanded={hasChildren(node) ? isOpen(node) : undefined}
                aria-selected={node === at}
                onClick={() => select(node)}
                onDblClick={() => void (props.onDouble?.(node) || toggle(node, !isOpen(node)))}
                onContextMenu={(event) => {
                  if (!props.menu) return;
                  event.preventDefault();
                  select(node);
                  props.menu(node, event.clientX, event.clientY);
                }}
              >
                <div role="gridcell" class="numeric">{row.amount}</div>
                <div role="gridcell" class="numeric barred"><Share part={row.part} /><span class="cell-text">{share(row.part)}</span></div>
                <div role="gridcell" class="numeric">{row.more}</div>
                <div role="gridcell" title={row.title}>
                  <span style={{ display: "inline-block", width: `${Math.min(row.level, MOST_INDENT) * (narrow ? 0.5 : 1.1)}em` }} />
                  {row.level >= MOST_INDENT && <span class="faint">({row.level + 1}) </span>}
                  <span
                    class="twisty"
                    aria-hidden="true"
                    onClick={(event) => {
                      event.stopPropagation();
                      toggle(node, !isOpen(node));
                    }}
                  >
                    {hasChildren(node) ? (isOpen(node) ? "▾" : "▸") : ""}
                  </span>
                  <span class="mark" style={{ background: row.colour }} />
                  <span class="cell-text">{row.name}</span>
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
