// Lanes of the timeline: what each thread was about, piece by piece, and what happened on it.

import type { Document, Json, Page } from "../data/document";
import { oneLine, time as inWords } from "../data/format";
import { MOMENTS } from "../tabs";

export interface Lane {
  key: string;
  label: string;
  /** Amounts by piece and kind: piece times number of kinds, plus kind. */
  amounts: Float64Array;
}

/** Part of its time that a thread stands idle at least to be folded. */
const IDLE = 0.95;

/** Whether the tool's state `idle` says of nearly all of a thread's time that it only waits. */
export function isIdle({ kinds }: Lanes, { amounts }: Lane): boolean {
  const idle = kinds.indexOf("idle");
  if (idle < 0) return false;
  let [sum, waited] = [0, 0];
  for (let at = 0; at < amounts.length; at++) {
    sum += amounts[at];
    if (at % kinds.length === idle) waited += amounts[at];
  }
  return sum > 0 && waited >= IDLE * sum;
}

/** Several lanes as one: their mean. */
export function together(lanes: Lane[], key: string, label: string): Lane {
  const amounts = new Float64Array(lanes[0]?.amounts.length ?? 0);
  for (const lane of lanes) lane.amounts.forEach((amount, at) => (amounts[at] += amount / lanes.length));
  return { key, label, amounts };
}

export interface Marker {
  lane: string | null;
  time: number;
  duration: number;
  kind: "exception" | "collection" | "compilation" | "load" | "other";
  text: string;
}

export interface Lanes {
  kinds: string[];
  pieces: number;
  /** Nanoseconds of a piece. */
  piece: number;
  /** Beginning of the first piece. */
  start: number;
  lanes: Lane[];
  /** What the amounts are. */
  title: string;
}

const keyOf = (pid: number, thread: { [key: string]: Json } | undefined): string => `${pid}.${thread?.id ?? 0}`;

/** The lanes of a document of the view `timeline`. */
export function lanesOf(document: Document | undefined, firstPid: number, start: number): Lanes {
  const section = document?.main;
  // Without samples there are no threads to be seen; nothing is looked at more closely than this.
  if (!section) return { kinds: [], pieces: 0, piece: 1e6, start, lanes: [], title: "" };
  const column = (key: string) => section.column(key)!;
  const [thread, kind, begin, duration, amount] = ["thread", "kind", "time_ns", "duration_ns", "amount_ns"].map(column);
  // One process needs no number.
  const pid = section.column("pid");
  const kinds: string[] = [];
  const lanes = new Map<string, Lane>();
  let piece = 1;
  let last = start;
  for (let row = 0; row < section.rows; row++) {
    piece = Math.max(piece, duration.number(row));
    last = Math.max(last, begin.number(row));
    const name = String(kind.value(row));
    if (!kinds.includes(name)) kinds.push(name);
  }
  const pieces = Math.floor((last - start) / piece) + 1;
  for (let row = 0; row < section.rows; row++) {
    const found = thread.value(row) as { [key: string]: Json } | undefined;
    const key = keyOf(pid?.number(row) ?? firstPid, found);
    let lane = lanes.get(key);
    if (!lane) {
      const label = oneLine(`${found?.id ?? 0} ${found?.name || found?.role || "unknown"}`);
      lane = { key, label, amounts: new Float64Array(pieces * kinds.length) };
      lanes.set(key, lane);
    }
    const at = Math.max(0, Math.floor((begin.number(row) - start) / piece));
    lane.amounts[at * kinds.length + kinds.indexOf(String(kind.value(row)))] += amount.number(row);
  }
  // Those that were busy most come first.
  return { kinds, pieces, piece, start, lanes: [...lanes.values()], title: (document.sections.find((section) => section.packed.key === "threads")?.packed.title ?? "time").replace(/ of threads.*/, "") };
}

/** What happened, of all documents that know moments. */
export function markersOf(page: Page, documents: Document[]): Marker[] {
  const markers: Marker[] = [];
  const firstPid = page.recording.processes[0]?.pid ?? 0;
  for (const document of documents) {
    const section = document.main;
    const begin = section?.column("time_ns") ?? section?.column("start_ns");
    if (!section || !begin || !MOMENTS.includes(document.view)) continue;
    const [thread, pid] = ["thread", "pid"].map((key) => section.column(key));
    const duration = section.column("duration_ns") ?? section.column("pause_ns");
    for (let row = 0; row < section.rows; row++) {
      const found = told(document, row);
      if (!found) continue;
      const on = thread?.value(row) as { [key: string]: Json } | undefined;
      const process = pid?.packed.json ? pid.number(row) || firstPid : firstPid;
      markers.push({ lane: on ? keyOf(process, on) : null, time: begin.number(row), duration: duration?.number(row) ?? 0, ...found });
    }
  }
  return markers.sort((a, b) => a.time - b.time);
}

/** Kind and words of a row that is a moment; null for rows that are not shown. */
function told(document: Document, row: number): Pick<Marker, "kind" | "text"> | null {
  const section = document.main!;
  const text = (key: string) => oneLine(String(section.column(key)?.value(row) ?? ""));
  if (document.view === "exceptions") return { kind: "exception", text: `${text("type")}: ${text("message")}` };
  if (document.view === "gc") {
    const pause = section.column("pause_ns")?.number(row) ?? 0;
    return { kind: "collection", text: `collection ${text("number")}, generation ${text("generation")}, ${text("reason")}, paused ${inWords(pause)}` };
  }
  // The end of what lasts is told at its begin.
  if (text("phase") === "end") return null;
  const group = text("group");
  const names = Object.values((section.column("names")?.value(row) ?? {}) as { [key: string]: Json }).map(String);
  const kind = group === "gc" ? "collection" : group === "jit" ? "compilation" : ["loads", "module", "class", "assembly", "load"].includes(group) ? "load" : group === "exceptions" ? "exception" : "other";
  return { kind, text: oneLine([text("event"), ...names].join(" ")) };
}
