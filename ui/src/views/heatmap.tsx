// A heat map of latency over time: requests by when they began and how long they took, on a
// logarithmic axis.

import { useMemo, useState } from "preact/hooks";
import { between, count, oneLine, roundTime } from "../data/format";
import { type Cell, cellBeside, chosenOf, type HeatMap, levelsOf, meets } from "../model/heatmap";
import type { Chosen } from "../model/requests";
import { Ticks } from "./ticks";

/** Height of a row on the screen. */
const HIGH = 18;
/** With no more bounds each has its words; else those that are powers of ten. */
const FEW_BOUNDS = 6;
/** Routes of a cell that are named. */
const MOST_ROUTES = 3;

interface Props {
  map: HeatMap;
  chosen: Chosen | null;
  /** What a click on a cell leads to. */
  leadsTo: string;
  /** A cell was chosen; null takes that back. */
  choose(chosen: Chosen | null): void;
}

export function Heat({ map, chosen, leadsTo, choose }: Props) {
  const [at, setAt] = useState<Cell | null>(null);
  const [hovered, setHovered] = useState<Cell | null>(null);
  const [isFocused, setFocused] = useState(false);
  const { columns, bounds, cells } = map;
  const rows = bounds.length - 1;
  const levels = useMemo(() => levelsOf(map.most), [map]);
  const shadeOf = (cell: Cell) => levels.find(({ most }) => cell.count <= most)!.shade;
  const place = ({ column, row }: Cell) => ({ left: `${(column / columns) * 100}%`, width: `${100 / columns}%`, top: `${(rows - 1 - row) * HIGH}px`, height: `${HIGH}px` });
  const drawn = useMemo(
    () => cells.map((cell) => (
      <div
        key={`${cell.column} ${cell.row}`}
        class={`heat-cell${cell.failed > 0 ? " failed" : ""}${chosen && meets(map, cell, chosen) ? " chosen" : ""}`}
        data-count={cell.count}
        data-failed={cell.failed}
        style={{ ...place(cell), "--shade": `var(--heat-${shadeOf(cell)})` }}
      />
    )),
    [map, chosen],
  );
  // Another map may have no such cell.
  const near = at && (cells.find((cell) => cell.column === at.column && cell.row === at.row) ?? null);
  const walked = isFocused ? (near ?? cells[0]) : null;
  const cellAt = (event: MouseEvent): Cell | null => {
    const plot = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const column = Math.floor(((event.clientX - plot.left) / plot.width) * columns);
    const row = rows - 1 - Math.floor((event.clientY - plot.top) / HIGH);
    return cells.find((cell) => cell.column === column && cell.row === row) ?? null;
  };
  const pick = (cell: Cell | null) => {
    if (!cell) return;
    setAt(cell);
    choose(chosenOf(map, cell));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !walked) return;
    if (event.key.startsWith("Arrow")) setAt(cellBeside(map, walked, event.key));
    else if (event.key === "Home") setAt(cells[0]);
    else if (event.key === "End") setAt(cells[cells.length - 1]);
    else if (event.key === "Enter") pick(walked);
    else if (event.key === "Escape" && chosen) choose(null);
    else return;
    setHovered(null);
    event.preventDefault();
    event.stopPropagation();
  };
  const told = hovered ?? walked;
  return (
    <>
      <div class="heat-map">
        <Durations bounds={bounds} />
        <div
          class="heat-plot"
          style={{ height: `${rows * HIGH}px` }}
          tabIndex={0}
          role="application"
          aria-label={`Heat map of ${count(map.count)} requests by when they began and how long they took. Arrow keys walk from cell to cell, Enter chooses one; the table of each request has the same.`}
          aria-describedby="heat-told"
          onPointerMove={(event) => setHovered(cellAt(event))}
          onPointerLeave={() => setHovered(null)}
          onClick={(event) => pick(cellAt(event))}
          onKeyDown={onKeyDown}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
        >
          {drawn}
          {walked && <div class="heat-at" style={place(walked)} />}
        </div>
        <div class="heat-times" aria-hidden="true">
          <Ticks seen={[map.start, map.start + columns * map.step]} most={innerWidth < 600 ? 4 : 8} />
        </div>
      </div>
      <div class="told" id="heat-told">{told ? inWords(map, told) : `${summary(map)} A click on a cell, or Enter, leads to ${leadsTo}.`}</div>
      <p class="unseen" aria-live="polite">{walked && !hovered ? inWords(map, walked) : ""}</p>
      <div class="legend">
        <span class="faint">requests:</span>
        {levels.map(({ least, most, shade }) => (
          <span key={shade}><span class="mark shade" style={{ "--shade": `var(--heat-${shade})` }} />{least === most ? count(least) : `${count(least)} to ${count(most)}`}</span>
        ))}
        {map.failed > 0 && <span><span class="mark shade failed" style={{ "--shade": "var(--heat-1)" }} />some failed</span>}
      </div>
    </>
  );
}

/** Words at the durations between rows. */
function Durations({ bounds }: { bounds: number[] }) {
  const isTen = (bound: number) => /^10*$/.test(String(bound));
  return (
    <div class="heat-durations" aria-hidden="true">
      {bounds.map((bound, at) => (isTen(bound) || bounds.length <= FEW_BOUNDS) && <span key={bound} style={{ bottom: `${at * HIGH}px` }}>{roundTime(bound)}</span>)}
    </div>
  );
}

const requests = (number: number): string => `${count(number)} ${number === 1 ? "request" : "requests"}`;

function summary({ count: all, failed, underWay, partial }: HeatMap): string {
  const parts = [
    requests(all),
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(underWay > 0 ? [`${count(underWay)} still running at the end, with their time until then`] : []),
    ...(partial > 0 ? [`${count(partial)} left out because they began before the recording`] : []),
  ];
  return `${parts.join(", ")}.`;
}

/** What is known of a cell. */
function inWords(map: HeatMap, cell: Cell): string {
  const { began, took } = chosenOf(map, cell);
  const routes = [...cell.routes].sort((a, b) => b[1] - a[1]);
  const named = routes.slice(0, MOST_ROUTES).map(([route, number]) => `${oneLine(route)} ${count(number)}`);
  const others = routes.length - named.length;
  return [
    `began ${between(began[0], began[1] + 1)}`,
    `took ${between(took[0], took[1] + 1)}`,
    requests(cell.count),
    `${count(cell.failed)} failed`,
    ...(cell.aborted > 0 ? [`${count(cell.aborted)} aborted by clients`] : []),
    ...(cell.underWay > 0 ? [`${count(cell.underWay)} still running at the end`] : []),
    ...named,
    ...(others > 0 ? [`${count(others)} more ${others === 1 ? "route" : "routes"}`] : []),
  ].join(" · ");
}
