// Tracks of the timeline: what counters said, each by time.

import type { Document, PackedTrack } from "../data/document";
import { count, oneLine } from "../data/format";

/** A value with its interval, nanoseconds since the start. */
export interface Point {
  from: number;
  to: number;
  value: number;
  least: number;
  greatest: number;
}

export interface Track {
  /** Provider, name and labels; the process before them where there are several. */
  key: string;
  label: string;
  name: string;
  provider: string;
  /** Unit of its values, of what only grows with `per s`. */
  unit: string;
  points: Point[];
  least: number;
  greatest: number;
}

/** Counters that tell most about a program, in this order. */
const TELLING = [
  "cpu-usage",
  "gc-heap-size",
  "threadpool-queue-length",
  "threadpool-thread-count",
  "requests-per-second",
  "exception-count",
];
/** Counters of the program's own beside them. */
const MOST_OWN = 3;
/** Beginnings of the names of providers that are the framework's. */
const FRAMEWORK = /^(System|Microsoft|OpenTelemetry)[.-]/;

/** The tracks of the document of the view `counters`, in its order. */
export function tracksOf(document: Document | undefined): Track[] {
  const section = document?.main;
  const packed = document?.packed.tracks;
  if (!section || !packed) return [];
  const text = (key: string, row: number) => oneLine(String(section.column(key)?.value(row) ?? ""));
  const pid = section.column("pid");
  return packed.slice(0, section.rows).map((track, row) => {
    const [provider, name, unit, tags] = ["provider", "name", "unit", "tags"].map((key) => text(key, row));
    const label = `${name}${tags && ` {${tags}}`}`;
    const process = pid ? `${pid.number(row)}: ` : "";
    const points = pointsOf(track);
    return {
      key: `${process}${provider}/${name}${tags && `{${tags}}`}`,
      label: `${process}${label}`,
      name,
      provider,
      unit: [unit, ...(text("kind", row) === "counter" ? ["per s"] : [])].filter((part) => part !== "").join(" "),
      points,
      least: Math.min(0, ...points.map((point) => point.least)),
      greatest: Math.max(0, ...points.map((point) => point.greatest)),
    };
  });
}

function pointsOf({ times, values, least, greatest }: PackedTrack): Point[] {
  let before = 0;
  return values.map((value, at) => {
    const from = before + times[2 * at];
    const to = (before = from + times[2 * at + 1]);
    return { from: from * 1000, to: to * 1000, value, least: least?.[at] ?? value, greatest: greatest?.[at] ?? value };
  });
}

/** The tracks that are shown where nobody chose any: those that tell most, and some of the program's own. */
export function unasked(tracks: Track[]): Track[] {
  const moving = tracks.filter((track) => track.least < 0 || track.greatest > 0);
  const telling = TELLING.flatMap((name) => moving.filter((track) => track.name === name && FRAMEWORK.test(track.provider)));
  const own = moving.filter((track) => !FRAMEWORK.test(track.provider)).slice(0, MOST_OWN);
  const found = [...telling, ...own];
  return found.length > 0 ? found : moving.slice(0, TELLING.length);
}

/** The point whose interval has a moment. */
export function pointAt(track: Track, at: number): Point | undefined {
  let [low, high] = [0, track.points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (track.points[middle].to < at) low = middle + 1;
    else high = middle;
  }
  const point = track.points[low];
  return point && point.from <= at ? point : undefined;
}

/** A number in four digits or more, as the tool's text has it. */
export function plain(value: number): string {
  const size = Math.abs(value);
  const grouped = (number: number) => `${number < 0 ? "-" : ""}${count(Math.abs(number))}`;
  if (Number.isInteger(value) && size < 1e15) return grouped(value);
  if (size < 0.001) return value.toExponential(2);
  if (size < 9.9995) return value.toFixed(3);
  if (size < 99.995) return value.toFixed(2);
  if (size < 999.95) return value.toFixed(1);
  return size < 1e15 ? grouped(Math.round(value)) : value.toExponential(3);
}

/** A number with its unit. */
export const withUnit = (value: number, unit: string): string => `${plain(value)}${unit && ` ${unit}`}`;
