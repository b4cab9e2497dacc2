// A table of any number of rows: ordered by its headings, walked with the arrow keys.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fitted, useCells } from "./fitted";
import { useVirtual, ROW } from "./virtual";

export interface TableColumn {
  key: string;
  title: string;
  numeric: boolean;
  /** Columns of letters. */
  width: number;
  /** Columns of letters at least on a wide screen, where those are more than of other words. */
  least?: number;
  /** Paths, of which the end tells most. */
  isPath?: boolean;
  /** Names of functions and types, whose namespaces give way first. */
  isName?: boolean;
  text(row: number): string;
  /** What rows are ordered by; rows keep their order where two are the same. */
  order(row: number): number | string;
  /** Part of the whole that a bar next to the text shows. */
  bar?(row: number): number;
  /** Colour of a mark before the text. */
  mark?(row: number): string;
  /** Levels that the text stands to the right, under what it lies within. */
  indent?(row: number): number;
}

/** Levels of indentation at most; further in a number says the depth. */
const MOST_INDENT = 16;
/** Pixels of a level of indentation, and of a mark with the gap behind it. */
const INDENT = 13;
const MARK = 16;

interface Props {
  label: string;
  rows: number[];
  columns: TableColumn[];
  sort: string;
  onSort(sort: string): void;
  selected: number | null;
  onSelect(row: number): void;
  /** Double click, Enter. */
  onOpen?(row: number): void;
  /** Follows a double click, where that is something else than to open. */
  onDouble?(row: number): void;
  onMenu?(row: number, x: number, y: number): void;
  onKey?(row: number, event: KeyboardEvent): boolean;
  below?(row: number): string[];
}

export function Table(props: Props) {
  const { label, rows, columns, sort, selected } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const ordered = useMemo(() => inOrder(rows, columns, sort), [rows, columns, sort]);
  const list = useVirtual(ordered.length, scroll);
  const heads = useRef<HTMLDivElement>(null);
  const cells = useCells(heads, columns.map((column) => column.key).join());
  const [at, setAt] = useState(0);
  // Letters and the gaps between columns; below that the table is scrolled.
  const narrow = innerWidth < 600;
  const widths = useMemo(() => new Map(columns.map((column) => [column.key, needed(column, rows)])), [columns, rows]);
  const wide = (column: TableColumn) => (column.numeric ? column.width + (column.bar ? (narrow ? 4 : 7) : 0) : widths.get(column.key)!);
  const words = (column: TableColumn) => Math.min(wide(column), narrow ? 15 : (column.least ?? 22));
  const least = columns.reduce((sum, column) => sum + (column.numeric ? wide(column) : words(column)) + 1.5, 2);
  const id = useMemo(() => `table${Math.random().toString(36).slice(2)}`, []);

  useEffect(() => setAt((now) => Math.min(now, Math.max(0, ordered.length - 1))), [ordered.length]);

  const go = (to: number) => {
    const next = Math.max(0, Math.min(ordered.length - 1, to));
    if (ordered.length === 0) return;
    setAt(next);
    list.show(next);
    props.onSelect(ordered[next]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? ROW) / ROW) - 2);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: ordered.length - 1 };
    const row = ordered[at];
    if (event.key in steps) go(steps[event.key]);
    else if (event.key === "Enter" && row !== undefined) (props.onOpen ?? props.onSelect)(row);
    else if (row === undefined || !props.onKey?.(row, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const grid = { "grid-template-columns": columns.map((column) => (column.numeric ? `${wide(column)}ch` : `minmax(${words(column)}ch, ${wide(column)}ch)`)).join(" ") };

  return (
    <div
      class="table"
      role="grid"
      aria-label={label}
      aria-rowcount={ordered.length + 1}
      tabIndex={0}
      ref={scroll}
      onKeyDown={onKeyDown}
      aria-activedescendant={list.items.some((item) => item.index === at) ? `${id}-${at}` : undefined}
    >
      <div class="table-inner" role="presentation" style={{ "min-width": `${least}ch` }}>
        <div role="rowgroup" class="table-head">
          <div role="row" class="table-row" style={grid} aria-rowindex={1} ref={heads}>
            {columns.map((column) => {
              const isBy = sort.replace("-", "") === column.key;
              const down = isBy && !sort.startsWith("-");
              return (
                <div
                  role="columnheader"
                  key={column.key}
                  class={column.numeric ? "numeric" : ""}
                  aria-sort={isBy ? (down === column.numeric ? "descending" : "ascending") : "none"}
                >
                  <button type="button" tabIndex={-1} onClick={() => props.onSort(down ? `-${column.key}` : column.key)}>
                    {column.title}
                    <span aria-hidden="true">{isBy ? (down === column.numeric ? " ▾" : " ▴") : ""}</span>
                  </button>
                </div>
              );
            })}
          </div>
        </div>
        <div role="rowgroup" class="table-body" style={{ height: `${list.height}px` }}>
          {list.items.map((item) => {
            const row = ordered[item.index];
            if (row === undefined) return null;
            const below = props.below?.(row) ?? [];
            const state = `${item.index % 2 ? " odd" : ""}${row === selected ? " selected" : ""}${item.index === at ? " at" : ""}`;
            return (
              <div
                role="row"
                id={`${id}-${item.index}`}
                key={item.key as number}
                class={`table-row${state}`}
                style={{ ...grid, top: `${item.start}px` }}
                aria-rowindex={item.index + 2}
                aria-selected={row === selected}
                onClick={() => {
                  setAt(item.index);
                  props.onSelect(row);
                }}
                onDblClick={() => (props.onDouble ?? props.onOpen)?.(row)}
                onContextMenu={(event) => {
                  if (!props.onMenu) return;
                  event.preventDefault();
                  setAt(item.index);
                  props.onSelect(row);
                  props.onMenu(row, event.clientX, event.clientY);
                }}
              >
                {columns.map((column, place) => {
                  const text = column.text(row);
                  const bar = column.bar?.(row);
                  const mark = column.mark?.(row);
                  const indent = column.indent?.(row) ?? 0;
                  return (
                    <div role="gridcell" key={column.key} class={bar !== undefined ? "numeric barred" : column.numeric ? "numeric" : column.isPath ? "path" : ""} title={[text, ...below].join("\n")}>
                      {bar !== undefined && <Share part={bar} />}
                      {indent > 0 && <span class="indent" style={{ width: `${Math.min(indent, MOST_INDENT)}em` }} />}
                      {indent > MOST_INDENT && <span class="faint">({indent}) </span>}
                      {mark && <span class="mark" style={{ background: mark }} />}
                      <span class="cell-text">{column.isName && cells ? fitted(text, cells.widths[place] - (mark ? MARK : 0) - indent * INDENT, cells.font) : text}</span>
                    </div>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** The bar of a part of the whole, next to its digits. */
export const Share = ({ part }: { part: number }) => <span class="bar-room" aria-hidden="true">{part > 0 && <span class="bar" style={{ width: `${Math.min(100, part * 100)}%` }} />}</span>;

/** Rows whose words a column has room for. */
const ROWS_WITH_ROOM = 500;
/** Columns of letters at most. */
const MOST_LETTERS = 160;

/** Columns of letters that a column needs: no more than its longest words of the first rows. */
function needed(column: TableColumn, rows: number[]): number {
  if (column.numeric) return column.width;
  let longest = column.title.length + 2;
  for (const row of rows.slice(0, ROWS_WITH_ROOM)) longest = Math.max(longest, column.text(row).length + (column.mark ? 3 : 0) + (column.indent?.(row) ?? 0) * 2);
  return Math.min(MOST_LETTERS, longest + 2);
}

/** Numbers from the largest down, words from A to Z; `-` before the key turns that round. */
function inOrder(rows: number[], columns: TableColumn[], sort: string): number[] {
  const column = columns.find((column) => column.key === sort.replace("-", ""));
  if (!column) return rows;
  const keys = new Map(rows.map((row) => [row, column.order(row)]));
  const sign = (column.numeric ? -1 : 1) * (sort.startsWith("-") ? -1 : 1);
  return [...rows].sort((a, b) => {
    const [x, y] = [keys.get(a)!, keys.get(b)!];
    return x === y ? 0 : sign * (x < y ? -1 : 1);
  });
}
