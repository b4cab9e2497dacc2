// What the page shows, as its address says it: undoing is the browser's way back.

import { type Chosen, readChosen, readGroup, writtenChosen } from "./model/requests";
import { STATE_NAMES } from "./model/states";

export interface State {
  tab: string;
  /** Number of the document of paths and name of the measure: `0.wall`. */
  metric: string;
  invert: boolean;
  /** Paths are those that threads had. */
  physical: boolean;
  /** Nameless native code is shown function by function. */
  nameless: boolean;
  search: string;
  /** Transforms as they are written. */
  changes: string;
  /** Threads by process and number; none means all. */
  threads: string[];
  /** States of the time that is shown, by name; none means all. */
  states: string[];
  /** Frames have the colours of kinds of code, whatever else is known. */
  byCode: boolean;
  /** The part of the flame graph that is shown, as shares of its width. */
  zoom: [number, number] | null;
  /** The function that is looked at, by what addresses call it. */
  func: number | null;
  /** The part of the time that is looked at, nanoseconds since the start. */
  range: [number, number] | null;
  /** Names of the counters that the timeline shows; null for those that it shows unasked. */
  counters: string[] | null;
  /** The requests whose work is looked at; null for all, and what no request is for. */
  requests: Chosen | null;
  /** The requests that the heat map has, as addresses have groups; empty for all that were served. */
  map: string;
  /** Path of the source file that is looked at, and the line; 0 for none. */
  file: string;
  line: number;
  /** Key of the column by which the table of a tab is ordered, `-` before it for the other way. */
  sort: string;
}

/** The state as the part of an address behind `#`. */
export function written(state: State): string {
  const all = new URLSearchParams();
  if (state.tab) all.set("tab", state.tab);
  if (state.metric) all.set("metric", state.metric);
  if (state.invert) all.set("invert", "1");
  if (state.physical) all.set("physical", "1");
  if (state.nameless) all.set("nameless", "1");
  if (state.search) all.set("search", state.search);
  if (state.changes) all.set("changes", state.changes);
  if (state.threads.length > 0) all.set("threads", state.threads.join(","));
  if (state.states.length > 0) all.set("states", state.states.join(","));
  if (state.byCode) all.set("colour", "code");
  if (state.zoom) all.set("zoom", state.zoom.map((one) => Number(one.toFixed(9))).join(","));
  if (state.func !== null) all.set("function", String(state.func));
  if (state.range) all.set("range", state.range.map(Math.round).join(","));
  // None at all is one without a name.
  state.counters?.concat(state.counters.length === 0 ? [""] : []).forEach((name) => all.append("counter", name));
  if (state.requests) all.set("requests", writtenChosen(state.requests));
  if (state.map) all.set("map", state.map);
  if (state.file) all.set("file", state.file);
  if (state.line > 0) all.set("line", String(state.line));
  if (state.sort) all.set("sort", state.sort);
  return all.toString();
}

/** The state of an address; what makes no sense is left out. */
export function read(hash: string): State {
  const all = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: string) => all.get(key) ?? "";
  const [from, to] = text("zoom").split(",").map(Number);
  const isZoom = from >= 0 && to > from && to <= 1;
  const [since, until] = text("range").split(",").map(Number);
  const func = /^\d+$/.test(text("function")) ? Number(text("function")) : null;
  return {
    tab: text("tab"),
    metric: text("metric"),
    invert: text("invert") === "1",
    physical: text("physical") === "1",
    nameless: text("nameless") === "1",
    search: text("search"),
    changes: text("changes"),
    threads: text("threads").split(",").filter((one) => one !== ""),
    states: text("states").split(",").filter((one) => STATE_NAMES.includes(one)),
    byCode: text("colour") === "code",
    zoom: isZoom ? [from, to] : null,
    func,
    range: since >= 0 && until > since ? [since, until] : null,
    counters: all.has("counter") ? all.getAll("counter").filter((name) => name !== "") : null,
    requests: readChosen(text("requests")),
    map: readGroup(text("map")) ? text("map") : "",
    file: text("file"),
    line: /^\d{1,9}$/.test(text("line")) ? Number(text("line")) : 0,
    sort: text("sort"),
  };
}
