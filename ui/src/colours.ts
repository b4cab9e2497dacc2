// Colours by kind of code, after Okabe and Ito: told apart without red and green. Frames bear black text on each of them.

export const KINDS_OF_CODE: { names: string[]; label: string; colour: string; hatched?: boolean }[] = [
  { names: ["own"], label: "own code", colour: "#f0a830" },
  { names: ["framework"], label: "framework", colour: "#7cc4f0" },
  { names: ["jit", "type_loading", "runtime", "exceptions", "suspension"], label: "runtime, compiler", colour: "#5fc4a4" },
  { names: ["gc"], label: "garbage collection", colour: "#e88a50" },
  { names: ["native"], label: "native", colour: "#dba3c6" },
  { names: ["kernel"], label: "kernel", colour: "#b9b9c4" },
  { names: ["waiting"], label: "waiting", colour: "#efe58a" },
  { names: ["profiler", "unknown"], label: "unknown", colour: "#d6d6d6" },
  { names: ["cut"], label: "too small for this page", colour: "#f2f2f2" },
];

const byName = new Map(KINDS_OF_CODE.flatMap((kind) => kind.names.map((name) => [name, kind.colour] as const)));

const labels = new Map(KINDS_OF_CODE.flatMap((kind) => kind.names.map((name) => [name, kind.label] as const)));

/** The words of legends for a kind of code. */
export const labelOf = (code: string): string => labels.get(code) ?? "unknown";

/** The colour of a kind of code. */
export const colourOf = (code: string): string => byName.get(code) ?? "#d6d6d6";

/** Colours of what threads are about, by the names of the kinds of work and of the states. */
export const STATES: { names: string[]; label: string; colour: string }[] = [
  ...KINDS_OF_CODE.filter((kind) => !kind.names.includes("waiting")),
  { names: ["running"], label: "running", colour: "#f0a830" },
  { names: ["ready"], label: "ready, no processor", colour: "#d1480a" },
  { names: ["lock"], label: "waiting for a lock", colour: "#b5478f" },
  { names: ["sleeping"], label: "sleeping", colour: "#9db7c9" },
  { names: ["io"], label: "files, sockets", colour: "#4f8fd0" },
  { names: ["waiting"], label: "waiting for tasks, events", colour: "#efe58a" },
  { names: ["idle"], label: "idle", colour: "#e4e4e4" },
  { names: ["suspended"], label: "suspended by the runtime", colour: "#e88a50" },
];

const byState = new Map(STATES.flatMap((state) => state.names.map((name) => [name, state.colour] as const)));

/** The colour of what a thread is about. */
export const stateColour = (name: string): string => byState.get(name) ?? "#d6d6d6";
