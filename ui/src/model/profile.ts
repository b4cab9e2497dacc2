// The trees of a recording, before anything is merged or left out: a document of paths, and of a served page those parts of it
// that were looked at more closely.

import type { Document, Json, Measure, Section } from "../data/document";
import { oneLine } from "../data/format";
import type { Place } from "../data/source";
import type { Functions } from "./functions";
import { noStates, STATE_NAMES } from "./states";
import { Builder, type Func, type Nodes } from "./tree";

export interface ThreadInfo {
  /** Process and thread number, which name the thread in addresses. */
  key: string;
  label: string;
}

/** What a thread is called. */
export const threadLabel = (thread: { [key: string]: Json }): string => oneLine(`${thread.id ?? 0} ${thread.name || thread.role || "unknown"}`);

/** A node of a tree and all that lies below it, with paths that are too small for the whole tree. */
export interface Detail {
  pid: number;
  /** Functions from the root to the node. */
  path: number[];
  place: Place;
  profile: Profile;
}

/** The part of rows' amounts, of all or in a state, that lies within a part of the time. */
interface Parts {
  share(row: number, state?: number): number;
}

/** A document of paths. */
export class Profile {
  readonly functions: Func[];
  readonly threads: ThreadInfo[] = [];
  readonly measures: Measure[];
  private readonly func: Int32Array;
  private readonly thread: Int32Array;
  private readonly parent: Int32Array;
  private readonly pid: (row: number) => number;
  /** Amounts of everything by process and thread, where the document does not have all paths. */
  private readonly whole: Section | null;

  constructor(
    readonly document: Document,
    functions: Functions,
  ) {
    const section = document.main!;
    this.functions = functions.list;
    this.measures = document.packed.measures;
    // Functions that a change was about may be on no path any more.
    for (const other of document.sections) if (other !== section) functions.of(other);
    const size = section.rows;
    this.func = functions.of(section);
    this.thread = new Int32Array(size);
    this.parent = new Int32Array(size);
    const pid = section.column("pid");
    this.pid = (row) => pid?.number(row) ?? 0;
    this.whole = document.whole;
    this.readThreads();
    const path: number[] = [];
    for (let node = 0; node < size; node++) {
      const depth = section.packed.depths[node];
      path.length = depth;
      this.parent[node] = depth > 0 ? path[depth - 1] : -1;
      path.push(node);
    }
  }

  private readThreads(): void {
    const section = this.document.main!;
    const thread = section.column("thread");
    const known = new Map<string, number>();
    const processes = new Set<number>();
    const found: { pid: number; thread: { [key: string]: Json } }[] = [];
    for (let node = 0; node < section.rows; node++) {
      const process = this.pid(node);
      const key = `${process} ${thread ? thread.place(node) : 0}`;
      let number = known.get(key);
      if (number === undefined) {
        number = found.length;
        known.set(key, number);
        processes.add(process);
        found.push({ pid: process, thread: (thread?.value(node) ?? {}) as { [key: string]: Json } });
      }
      this.thread[node] = number;
    }
    // Threads of which all paths are small are there, too.
    const whole = this.document.whole;
    const ofWhole = whole?.column("thread");
    for (let row = 0; whole && ofWhole && row < whole.rows; row++) {
      const process = whole.column("pid")?.number(row) ?? 0;
      const of = (ofWhole.value(row) ?? {}) as { [key: string]: Json };
      if (!found.some((one) => one.pid === process && one.thread.id === of.id)) found.push({ pid: process, thread: of });
    }
    for (const { pid, thread } of found) {
      const name = threadLabel(thread);
      this.threads.push({ key: `${pid}.${thread.id ?? 0}`, label: processes.size > 1 ? `${pid}: ${name}` : name });
    }
  }

  /** Whether rows have an amount of the measure. */
  has(measure: Measure): boolean {
    const column = this.document.main?.column(measure.own);
    return column !== undefined && column.packed.values.some((value) => typeof value === "number" && value > 0);
  }

  /** Whether a part of the time can be chosen here. */
  get hasTimes(): boolean {
    return Boolean(this.document.packed.times);
  }

  /** The trees of some threads, or of all, merged, by a measure, within a part of the time, with more of some nodes. */
  merged(measure: Measure, threads: Set<string>, range: [number, number] | null, details: Detail[]): Nodes {
    const builder = new Builder(this.functions.length, this.hasStates(measure) ? noStates() : undefined);
    // What lies on no path that is there.
    const parts = range ? this.partsWithin(range) : null;
    const wanted = this.threads.map((thread) => threads.size === 0 || threads.has(thread.key));
    this.addBeside(builder, measure, wanted, parts);
    this.addTo(builder, 0, measure, threads, parts, details);
    // The outermost first: a closer look lies within another.
    const ordered = [...details].sort((a, b) => a.path.length - b.path.length);
    for (const detail of ordered) {
      const above = detail.path.slice(0, -1).reduce((node, func) => builder.child(node, func), 0);
      const within = ordered.filter((other) => isWithin(other, detail)).map((other) => ({ ...other, path: other.path.slice(detail.path.length - 1) }));
      detail.profile.addTo(builder, above, measure, new Set(), null, within);
    }
    return builder.nodes;
  }

  /** Adds the rows, but for those of a closer look. */
  private addTo(builder: Builder, root: number, measure: Measure, threads: Set<string>, parts: Parts | null, closer: Detail[]): void {
    const section = this.document.main!;
    const own = section.column(measure.own);
    const total = measure.total === null ? undefined : section.column(measure.total);
    const size = section.rows;
    const below = new Float64Array(size);
    const wanted = this.threads.map((thread) => threads.size === 0 || threads.has(thread.key));
    if (total) {
      for (let node = 0; node < size; node++) {
        if (this.parent[node] >= 0) below[this.parent[node]] += total.number(node);
      }
    }
    const covered = new Uint8Array(size);
    for (const detail of closer) for (const row of this.rowsAt(detail.path, detail.pid)) covered[row] = 1;
    const map = new Int32Array(size);
    for (let node = 0; node < size; node++) {
      const parent = this.parent[node];
      if (covered[node] || (parent >= 0 && covered[parent])) {
        covered[node] = 1;
        continue;
      }
      if (!wanted[this.thread[node]]) continue;
      map[node] = builder.child(parent < 0 ? root : map[parent], this.func[node]);
      // Times by state add up to those of the row.
      if (builder.nodes.states) continue;
      const part = parts ? parts.share(node) : 1;
      const mine = own?.number(node) ?? 0;
      const rest = total ? Math.max(0, total.number(node) - mine - below[node]) : 0;
      builder.add(map[node], mine * part, rest * part);
    }
    const states = this.document.packed.states;
    if (!builder.nodes.states || !states) return;
    let row = 0;
    states.rows.forEach((distance, at) => {
      row += distance;
      if (covered[row] || !wanted[this.thread[row]]) return;
      const part = parts ? parts.share(row, states.states[at]) : 1;
      const [own, rest] = [states.own[at] * part, states.rest[at] * part];
      builder.add(map[row], own, rest);
      builder.addState(map[row], states.states[at], own, rest);
    });
  }

  /** Whether it is known in which states threads spent an amount. */
  hasStates(measure: Measure): boolean {
    return measure.unit === "time" && Boolean(this.document.packed.states);
  }

  /** Adds what lies on no path that is there. */
  private addBeside(builder: Builder, measure: Measure, wanted: boolean[], parts: Parts | null): void {
    const { states } = this.document.packed;
    const last = this.func.length;
    if (!builder.nodes.states || !states) return builder.add(0, 0, this.beside(measure, wanted) * (parts ? parts.share(last) : 1));
    for (const [pid, thread, state, ns] of states.beside) {
      const at = this.threads.findIndex((one) => one.key === `${pid}.${thread}`);
      if (at >= 0 && !wanted[at]) continue;
      const amount = ns * (parts ? parts.share(last, state) : 1);
      builder.add(0, 0, amount);
      builder.addState(0, state, 0, amount);
    }
  }

  /** What lies on no path that is there: of the wanted threads' amounts what their rows don't have. */
  private beside(measure: Measure, wanted: boolean[]): number {
    const [section, whole] = [this.document.main!, this.whole];
    if (!whole) return 0;
    const key = measure.total ?? measure.own;
    const [all, ofRows] = [whole.column(key), section.column(key)];
    const [pid, thread] = [whole.column("pid"), whole.column("thread")];
    const isWanted = (row: number) => {
      if (!thread) return true;
      const id = ((thread.value(row) ?? {}) as { id?: number }).id ?? 0;
      const at = this.threads.findIndex((one) => one.key === `${pid?.number(row) ?? 0}.${id}`);
      return at < 0 || wanted[at];
    };
    let sum = 0;
    for (let row = 0; row < whole.rows; row++) if (isWanted(row)) sum += all?.number(row) ?? 0;
    for (let row = 0; row < section.rows; row++) {
      // Without totals each row has its own alone.
      if ((measure.total === null || this.parent[row] < 0) && wanted[this.thread[row]]) sum -= ofRows?.number(row) ?? 0;
    }
    return Math.max(0, sum);
  }

  /** The part of each row's own amount that lies within a part of the time; null where nobody knows. */
  private partsWithin([since, until]: [number, number]): Parts | null {
    const times = this.document.packed.times;
    if (!times) return null;
    // The last row stands for what lies on none of them.
    const size = this.document.main!.rows + 1;
    const states = times.states ?? [];
    const sets = 1 + (states.length > 0 ? STATE_NAMES.length : 0);
    const [all, within] = [new Float64Array(size * sets), new Float64Array(size * sets)];
    let at = 0;
    times.counts.forEach((rows, piece) => {
      const begin = times.start_ns + piece * times.piece_ns;
      const end = begin + times.piece_ns;
      const part = Math.max(0, Math.min(end, until) - Math.max(begin, since)) / times.piece_ns;
      let row = 0;
      for (const last = at + rows; at < last; at++) {
        row += times.rows[at];
        const places = states.length > 0 ? [row, (1 + states[at]) * size + row] : [row];
        for (const place of places) {
          all[place] += times.amounts[at];
          within[place] += times.amounts[at] * part;
        }
      }
    });
    const share = (place: number) => (all[place] > 0 ? within[place] / all[place] : 0);
    return { share: (row, state) => share((state === undefined || sets === 1 ? 0 : (1 + state) * size) + row) };
  }

  /** The rows at the end of a path, of a process. */
  private rowsAt(path: number[], pid: number): number[] {
    const found: number[] = [];
    const matched = new Int32Array(this.func.length).fill(-1);
    for (let row = 0; row < this.func.length; row++) {
      const above = this.parent[row] < 0 ? 0 : matched[this.parent[row]];
      if (above < 0 || this.func[row] !== path[above] || this.pid(row) !== pid) continue;
      if (above + 1 === path.length) found.push(row);
      else matched[row] = above + 1;
    }
    return found;
  }

  /** The places of the nodes at the end of a path, a process each. */
  placesOf(path: number[]): { pid: number; place: Place }[] {
    const found: { pid: number; place: Place }[] = [];
    for (const pid of new Set(Array.from({ length: this.func.length }, (_, row) => (this.parent[row] < 0 ? this.pid(row) : -1)))) {
      if (pid < 0) continue;
      const [row] = this.rowsAt(path, pid);
      if (row !== undefined) found.push({ pid, place: [pid, ...this.placesTo(row)] });
    }
    return found;
  }

  /** The places from the root to a row: of each row on the way, the number of those before it that have the same parent. */
  private placesTo(row: number): number[] {
    const way: number[] = [];
    for (let at = row; at >= 0; at = this.parent[at]) way.push(at);
    const places = new Map<number, number>(way.map((at) => [at, 0]));
    const step = new Map(way.map((at) => [`${this.parent[at]} ${this.pid(at)}`, at]));
    for (let before = 0; before < row; before++) {
      const at = step.get(`${this.parent[before]} ${this.pid(before)}`);
      if (at !== undefined && before < at) places.set(at, places.get(at)! + 1);
    }
    return way.reverse().map((at) => places.get(at)!);
  }
}

/** Whether a closer look lies within another one. */
const isWithin = (inner: Detail, outer: Detail): boolean =>
  inner !== outer && inner.pid === outer.pid && inner.path.length > outer.path.length && outer.path.every((func, at) => inner.path[at] === func);

/** Places of a path, as the closest look that has it knows them. */
export function placesOf(base: Profile, details: Detail[], path: number[]): { pid: number; place: Place }[] {
  const around = details.filter((one) => one.path.length <= path.length && one.path.every((func, at) => path[at] === func));
  const closest = around.sort((a, b) => b.path.length - a.path.length)[0];
  if (!closest) return base.placesOf(path);
  const inner = closest.profile.placesOf(path.slice(closest.path.length - 1));
  // The first place is that of the node itself, which is the root here.
  return inner.filter((one) => one.pid === closest.pid).map(({ pid, place }) => ({ pid, place: [...closest.place, ...place.slice(2)] }));
}
