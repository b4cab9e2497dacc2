// The functions of all documents of a page, each once, so that all name them by the same numbers.

import type { Section, Value } from "../data/document";
import { oneLine } from "../data/format";
import { SMALLER } from "./cut";
import type { Func } from "./tree";

export class Functions {
  readonly list: Func[] = [];
  /** Number of the frame of paths that there is no room for. */
  readonly smaller: number;
  /** What addresses call a function: the same in every page of a recording, whatever was looked at first. */
  private readonly ids: number[] = [];
  private readonly byId = new Map<number, number>();

  constructor() {
    this.smaller = this.add([SMALLER.label, SMALLER.signature, SMALLER.module], SMALLER);
  }

  /** Numbers of the functions that the rows of a section are about. */
  of(section: Section): Int32Array {
    const all = new Int32Array(section.rows).fill(-1);
    const [name, signature, module, code, foldedInto] = ["name", "signature", "module", "code", "folded_into"].map((key) => section.column(key));
    if (!name || !signature || !module || name.kind !== "function") return all;
    const known = new Map<string, number>();
    for (let row = 0; row < section.rows; row++) {
      const places = `${name.place(row)} ${signature.place(row)} ${module.place(row)}`;
      let func = known.get(places);
      if (func === undefined) {
        // A path that was entered by a tail call says so behind the name.
        const label = oneLine((name.words(row) ?? String(name.value(row))).trim().replace(/ \(tail call\)$/, ""));
        func = this.add([name.value(row), signature.value(row), module.value(row)], {
          label,
          signature: oneLine(String(signature.value(row) ?? label)),
          module: oneLine(String(module.value(row) ?? "")),
          code: "unknown",
        });
        // Not every view says whose code a function is, and what it is folded into if it has no name.
        const one = this.list[func];
        const said = code?.value(row);
        if (said !== undefined && one.code === "unknown") one.code = String(said);
        const library = foldedInto?.value(row);
        if (typeof library === "string" && one.library === undefined) {
          // What tables of folded functions have as a function of the library, too.
          one.library = this.add([library, library, module.value(row)], { label: oneLine(library), signature: "functions without names", module: one.module, code: one.code });
        }
        // A table that says no codes may have had the library's row before.
        const folded = one.library === undefined ? undefined : this.list[one.library];
        if (folded?.code === "unknown") folded.code = one.code;
        known.set(places, func);
      }
      all[row] = func;
    }
    return all;
  }

  /** Number of a function; what it is called makes it that one, and the rest is known of the first. */
  private add(called: Value[], made: Func): number {
    const id = idOf(JSON.stringify(called));
    let func = this.byId.get(id);
    if (func === undefined) {
      func = this.list.length;
      this.byId.set(id, func);
      this.ids.push(id);
      this.list.push(made);
    }
    return func;
  }

  /** What addresses call a function. */
  id(func: number): number {
    return this.ids[func];
  }

  /** The function that addresses call so, if it is known yet. */
  number(id: number): number | undefined {
    return this.byId.get(id);
  }
}

/** A number of 53 bits that a text nearly always has alone. */
function idOf(text: string): number {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const letter = text.charCodeAt(at);
    high = Math.imul(high ^ letter, 2654435761);
    low = Math.imul(low ^ letter, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 4294967296 * (2097151 & low) + (high >>> 0);
}
