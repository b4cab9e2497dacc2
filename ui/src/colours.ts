// Colours by kind of code, after Okabe and Ito: told apart without red and green. Frames bear black text on each of them.

export const KINDS_OF_CODE: { names: string[]; label: string; colour: string; hatched?: boolean }[] = [
  { names: ["own"], label: "own code", colour: "#f0a830" },
  { names: ["framework"], label: "framework", colour: "#7cc4f0" },
  { names: ["jit", "type_loading", "runtime", "exceptions", "suspension"], label: "runtime, compiler", colour: "#5fc4a4" },
  { names: ["gc"], label: "garbage collection", colour: "#e88a50" },
  { names: ["native"], label: "native", colour: "#dba3c6" },
  { names: ["kernel"], label: "kernel", colour: "#b9b9c4" },
  { names: ["waiting"], label: "waiting", colour: "#efe58a" },
  { names: ["type"], label: "allocated type", colour: "#cdb48a" },
  { names: ["profiler", "unknown"], label: "unknown", colour: "#d6d6d6" },
  { names: ["cut"], label: "too small for this page", colour: "#f2f2f2" },
];

const byName = new Map(KINDS_OF_CODE.flatMap((kind) => kind.names.map((name) => [name, kind.colour] as const)));

const labels = new Map(KINDS_OF_CODE.flatMap((kind) => kind.names.map((name) => [name, kind.label] as const)));

/** The words of legends for a kind of code. */
export const labelOf = (code: string): string => labels.get(code) ?? "unknown";

/** The colour of a kind of code. */
export const colourOf = (code: string): string => byName.get(code) ?? "#d6d6d6";

/** Time in which async methods awaited: neither work nor blocked threads, and so of a colour that nothing else has. */
export const AWAITED = { label: "awaited: no thread ran or was blocked", colour: "#b3a6f7" };

/** The mark of an exception. */
export const EXCEPTION = { label: "exception", shape: "▼", colour: "#d1480a" };

export interface Shade {
  label: string;
  colour: string;
  /** The colour on dark pages, where it is another. */
  dark?: string;
  /** Stripes tell it apart where colours do not. */
  striped?: boolean;
}

/** The colour of a shade on a light or dark page. */
export const inTheme = (shade: Shade, dark: boolean): string => (dark ? (shade.dark ?? shade.colour) : shade.colour);

/** The colour of a shade for elements, which follow the theme by themselves. */
export const ofElement = ({ colour, dark }: Shade): string => (dark ? `light-dark(${colour}, ${dark})` : colour);

/** The colour of code in a picture of a measure. */
export const codeColour = (measure: string, code: string): string => (measure === "awaited" && code !== "cut" ? AWAITED.colour : colourOf(code));

/** States of time, by name: those of the tool, in its order, as frames and legends have them. */
export const STATES_OF_TIME: Record<string, Shade> = {
  running: { label: "running", colour: "#f0a830" },
  ready: { label: "ready, no processor", colour: "#f7cf8c", striped: true },
  lock: { label: "waiting for a lock", colour: "#d98bc0" },
  task: { label: "blocked on a task", colour: "#f29a8e", striped: true },
  waiting: { label: "waiting for events, others", colour: "#efe58a" },
  io: { label: "files, sockets", colour: "#6fb2ea" },
  sleeping: { label: "sleeping", colour: "#b4c9d6" },
  suspended: { label: "suspended by the runtime", colour: "#5fc4a4" },
  idle: { label: "idle threads", colour: "#e4e4e4", dark: "#3a414a" },
  unknown: { label: "unknown", colour: "#c0c0c0", striped: true },
};

/** Kinds of work, by name: as frames have them, and shades of the runtime's told apart. */
export const KINDS_OF_WORK: Record<string, Shade> = {
  own: { label: "own code", colour: "#f0a830" },
  framework: { label: "framework", colour: "#7cc4f0" },
  jit: { label: "compiling methods", colour: "#5fc4a4" },
  gc: { label: "garbage collection", colour: "#e88a50" },
  type_loading: { label: "loading types", colour: "#a8e0cd" },
  exceptions: { label: "handling exceptions", colour: "#5fc4a4", striped: true },
  locks: { label: "locks and waits", colour: "#efe58a", striped: true },
  suspension: { label: "suspension", colour: "#a8e0cd", striped: true },
  runtime: { label: "runtime", colour: "#3d9c80" },
  native: { label: "native", colour: "#dba3c6" },
  kernel: { label: "kernel", colour: "#a3a3b4" },
  profiler: { label: "profiler", colour: "#d0d0d0", striped: true },
  unknown: { label: "unknown", colour: "#d6d6d6" },
};

/** Colours of what threads are about, by the names of the kinds of work and of the states. */
export const STATES: ({ names: string[] } & Shade)[] = [
  ...KINDS_OF_CODE.filter((kind) => !kind.names.some((name) => name === "waiting" || name === "type")),
  { names: ["locks"], ...KINDS_OF_WORK.locks },
  ...Object.entries(STATES_OF_TIME)
    .filter(([name]) => name !== "unknown" && name !== "task")
    .map(([name, shade]) => ({ names: [name], ...shade, label: name === "waiting" ? "waiting for tasks, events" : shade.label })),
];

const byState = new Map(STATES.flatMap((state) => state.names.map((name) => [name, state] as const)));
const NO_STATE: Shade = { label: "unknown", colour: "#d6d6d6" };

/** The colour of what a thread is about. */
export const stateColour = (name: string, dark: boolean): string => inTheme(byState.get(name) ?? NO_STATE, dark);
