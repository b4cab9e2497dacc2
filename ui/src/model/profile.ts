// The trees of a recording, thread by thread, before anything is merged or left out.

import type { Document, Json, Measure, Section } from "../data/document";
import { oneLine } from "../data/format";
import { Builder, type Func, type Nodes } from "./tree";

export interface ThreadInfo {
  /** Process and thread number, which name the thread in addresses. */
  key: string;
  label: string;
}

/** The functions of all documents of a page, each once, so that all name them by the same numbers. */
export class Functions {
  readonly list: Func[] = [];
  private readonly known = new Map<string, number>();

  /** Numbers of the functions that the rows of a section are about. */
  of(section: Section): Int32Array {
    const all = new Int32Array(section.rows).fill(-1);
    const [name, signature, module, code] = ["name", "signature", "module", "code"].map((key) => section.column(key));
    if (!name || !signature || !module || name.kind !== "function") return all;
    for (let row = 0; row < section.rows; row++) {
      const key = `${name.place(row)} ${signature.place(row)} ${module.place(row)}`;
      let func = this.known.get(key);
      if (func === undefined) {
        func = this.list.length;
        this.known.set(key, func);
        // A path that was entered by a tail call says so behind the name.
        const label = oneLine((name.words(row) ?? String(name.value(row))).trim().replace(/ \(tail call\)$/, ""));
        this.list.push({
          label,
          signature: oneLine(String(signature.value(row) ?? label)),
          module: oneLine(String(module.value(row) ?? "")),
          code: String(code?.value(row) ?? "unknown"),
        });
      }
      all[row] = func;
    }
    return all;
  }
}

/** A document of paths. */
export class Profile {
  readonly functions: Func[];
  readonly threads: ThreadInfo[] = [];
  readonly measures: Measure[];
  private readonly func: Int32Array;
  private readonly thread: Int32Array;
  private readonly parent: Int32Array;

  constructor(
    readonly document: Document,
    functions: Functions,
  ) {
    const section = document.main!;
    this.functions = functions.list;
    this.measures = document.packed.measures;
    const size = section.rows;
    this.func = functions.of(section);
    this.thread = new Int32Array(size);
    this.parent = new Int32Array(size);
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
    const [thread, pid] = ["thread", "pid"].map((key) => section.column(key));
    const known = new Map<string, number>();
    const processes = new Set<number>();
    const found: { pid: number; thread: { [key: string]: Json } }[] = [];
    for (let node = 0; node < section.rows; node++) {
      const process = pid?.number(node) ?? 0;
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
    for (const { pid, thread } of found) {
      const name = oneLine(`${thread.id ?? 0} ${thread.name || thread.role || "unknown"}`);
      this.threads.push({ key: `${pid}.${thread.id ?? 0}`, label: processes.size > 1 ? `${pid}: ${name}` : name });
    }
  }

  /** Whether rows have an amount of the measure. */
  has(measure: Measure): boolean {
    const column = this.document.main?.column(measure.own);
    return column !== undefined && column.packed.values.some((value) => typeof value === "number" && value > 0);
  }

  /** The trees of some threads, or of all, merged, by a measure. */
  merged(measure: Measure, threads: Set<string>): Nodes {
    const section = this.document.main!;
    const own = section.column(measure.own);
    const total = measure.total === null ? undefined : section.column(measure.total);
    const builder = new Builder(this.functions.length);
    const size = section.rows;
    const below = new Float64Array(size);
    const wanted = this.threads.map((thread) => threads.size === 0 || threads.has(thread.key));
    if (total) {
      for (let node = 0; node < size; node++) {
        if (this.parent[node] >= 0) below[this.parent[node]] += total.number(node);
      }
    }
    const map = new Int32Array(size);
    for (let node = 0; node < size; node++) {
      if (!wanted[this.thread[node]]) continue;
      const parent = this.parent[node];
      map[node] = builder.child(parent < 0 ? 0 : map[parent], this.func[node]);
      const mine = own?.number(node) ?? 0;
      const rest = total ? Math.max(0, total.number(node) - mine - below[node]) : 0;
      builder.add(map[node], mine, rest);
    }
    return builder.nodes;
  }
}
