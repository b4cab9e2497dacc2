// Requests by when they began and how long they took: the numbers of a heat map.

import { type Chosen, type Group, isOf, type Requests } from "./requests";
import { roundAfter, roundBelow, roundStep } from "./scale";

export interface Cell {
  column: number;
  /** From the shortest durations up. */
  row: number;
  count: number;
  failed: number;
  aborted: number;
  /** Had not ended. */
  underWay: number;
  routes: Map<string, number>;
}

export interface HeatMap {
  group: Group;
  /** Begin of the first column and width of each, nanoseconds. */
  start: number;
  step: number;
  columns: number;
  /** Durations between rows, one more than there are rows: 1, 2, 5, 10 and so on. */
  bounds: number[];
  /** Cells with requests, by column and row. */
  cells: Cell[];
  /** Most requests of a cell. */
  most: number;
  count: number;
  failed: number;
  underWay: number;
  /** Requests that began before the recording, and so have no duration. */
  partial: number;
}

/** The map of a group's requests that began within a part of the run; null where none of these has a duration. */
export function heatMapOf(requests: Requests, group: Group, [from, to]: [number, number], mostColumns: number): HeatMap | null {
  const rows = Array.from({ length: requests.rows }, (_, row) => row).filter((row) => isOf(requests, row, group) && requests.began(row) >= from && requests.began(row) <= to);
  const timed = rows.filter((row) => requests.took(row) !== null);
  if (timed.length === 0) return null;
  const durations = timed.map((row) => requests.took(row)!);
  const bounds = boundsOf(least(durations), most(durations));
  const step = Math.max(1, roundStep(Math.max(1, to - from), mostColumns));
  const start = Math.floor(from / step) * step;
  const cells = new Map<number, Cell>();
  timed.forEach((request, at) => {
    const column = Math.floor((requests.began(request) - start) / step);
    const row = bounds.findIndex((bound, place) => place > 0 && durations[at] < bound) - 1;
    const key = column * bounds.length + row;
    let cell = cells.get(key);
    if (!cell) cells.set(key, (cell = { column, row, count: 0, failed: 0, aborted: 0, underWay: 0, routes: new Map() }));
    cell.count++;
    if (requests.failed(request)) cell.failed++;
    if (requests.aborted(request)) cell.aborted++;
    if (requests.isUnderWay(request)) cell.underWay++;
    const route = requests.route(request);
    cell.routes.set(route, (cell.routes.get(route) ?? 0) + 1);
  });
  const all = [...cells].sort(([a], [b]) => a - b).map(([, cell]) => cell);
  const sum = (of: "failed" | "underWay") => all.reduce((sum, cell) => sum + cell[of], 0);
  return {
    group,
    start,
    step,
    columns: Math.floor((to - start) / step) + 1,
    bounds,
    cells: all,
    most: most(all.map((cell) => cell.count)),
    count: timed.length,
    failed: sum("failed"),
    underWay: sum("underWay"),
    partial: rows.length - timed.length,
  };
}

const least = (numbers: number[]): number => numbers.reduce((least, one) => Math.min(least, one), Infinity);
const most = (numbers: number[]): number => numbers.reduce((most, one) => Math.max(most, one), 0);

/** Round durations with all between the shortest and the longest within. */
function boundsOf(shortest: number, longest: number): number[] {
  const bounds = [roundBelow(Math.max(1, shortest))];
  while (bounds[bounds.length - 1] <= longest) bounds.push(roundAfter(bounds[bounds.length - 1]));
  if (bounds.length === 1) bounds.push(roundAfter(bounds[0]));
  // What took no time that a clock saw is with the shortest.
  if (shortest < 1) bounds[0] = 0;
  return bounds;
}

/** The requests of a cell. */
export function chosenOf({ group, start, step, bounds }: HeatMap, { column, row }: Cell): Chosen {
  const began = start + column * step;
  return { ...group, took: [bounds[row], bounds[row + 1] - 1], began: [began, began + step - 1] };
}

/** Whether some of a cell's requests may be among those that were chosen. */
export function meets(map: HeatMap, cell: Cell, chosen: Chosen): boolean {
  const { took, began } = chosenOf(map, cell);
  const overlaps = (a: [number, number], b: [number, number]) => a[0] <= b[1] && b[0] <= a[1];
  const isOther = chosen.direction !== map.group.direction || (chosen.route !== null && !cell.routes.has(chosen.route));
  return !isOther && overlaps(took, chosen.took) && overlaps(began, chosen.began);
}

/** Shades of cells. */
export const SHADES = 5;

/** Counts that have one shade. */
export interface Level {
  least: number;
  most: number;
  /** From 1, the weakest, to `SHADES`. */
  shade: number;
}

/** The counts of a map's cells, parted so that each part is as many times the one before. */
export function levelsOf(most: number): Level[] {
  const begins: number[] = [];
  for (let at = 0; at < Math.min(SHADES, most); at++) begins.push(Math.max(at + 1, Math.round(most ** (at / SHADES))));
  return begins.map((begin, at) => ({
    least: begin,
    most: (begins[at + 1] ?? most + 1) - 1,
    shade: Math.round(((at + 1) / begins.length) * SHADES),
  }));
}

/** The cell that an arrow key leads to: the next one of the column, or the nearest of the next column that has some. */
export function cellBeside(map: HeatMap, from: Cell, key: string): Cell {
  const of = (column: number) => map.cells.filter((cell) => cell.column === column);
  if (key === "ArrowUp") return of(from.column).find((cell) => cell.row > from.row) ?? from;
  if (key === "ArrowDown") return of(from.column).filter((cell) => cell.row < from.row).pop() ?? from;
  const columns = map.cells.map((cell) => cell.column);
  const next = key === "ArrowRight" ? columns.find((column) => column > from.column) : columns.filter((column) => column < from.column).pop();
  if (next === undefined) return from;
  return of(next).reduce((near, cell) => (Math.abs(cell.row - from.row) < Math.abs(near.row - from.row) ? cell : near));
}
