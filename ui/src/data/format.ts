// Numbers for people: as the tool's text has them.

import type { Column, Json, Value } from "./document";
import { argument, isArgument, isValue, valued } from "./values";

function threeDigits(value: number): string {
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

/** A time: `12.3 ms`. */
export function time(ns: number): string {
  if (ns < 1000) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return `${threeDigits(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${threeDigits(ns / 1e6)} ms`;
  const seconds = ns / 1e9;
  return seconds < 999.5 ? `${threeDigits(seconds)} s` : `${count(Math.round(seconds))} s`;
}

/** Units of time that people read, with their nanoseconds. */
const UNITS: [string, number][] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

const unitOf = (ns: number): [string, number] => UNITS.find(([, size]) => ns >= size) ?? UNITS[UNITS.length - 1];
/** Without digits that say nothing. */
const inUnit = (ns: number, size: number): string => {
  const [whole, digits] = String(Number((ns / size).toPrecision(9))).split(".");
  return digits ? `${count(Number(whole))}.${digits}` : count(Number(whole));
};

/** A round time: `200 ms`. */
export function roundTime(ns: number): string {
  const [unit, size] = unitOf(ns);
  return `${inUnit(ns, size)} ${unit}`;
}

/** A stretch of time between round ones: `10.2 to 10.4 s`, `500 µs to 1 ms`. */
export function between(from: number, to: number): string {
  const [unit, size] = unitOf(to);
  return from > 0 && unitOf(from)[0] !== unit ? `${roundTime(from)} to ${roundTime(to)}` : `${inUnit(from, size)} to ${inUnit(to, size)} ${unit}`;
}

/** A size: `12.3 MB`, in powers of 1,000. */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = size;
  let unit = "B";
  for (const next of units) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return `${threeDigits(value)} ${unit}`;
}

/** A share of the whole: `12.3 %`. */
export const share = (part: number): string => `${(part * 100).toFixed(1)} %`;

/** A number with its thousands apart. */
export const count = (number: number): string => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");

/** An amount of a measure. */
export function amount(value: number, unit: string): string {
  if (unit === "time") return time(value);
  return unit === "bytes" ? bytes(value) : count(value);
}

/** A text in one line, with what can't be seen written out. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (c) =>
    c === "\n" ? "\\n" : c === "\t" ? "\\t" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A value by its kind. */
export function value(found: Value, kind: string): string {
  if (found === undefined || found === null) return "";
  if (typeof found === "number") {
    if (kind === "time") return time(found);
    if (kind === "bytes") return bytes(found);
    if (kind === "share") return share(found);
    return kind === "count" ? count(found) : String(found);
  }
  if (typeof found === "boolean") return found ? "yes" : "no";
  if (typeof found === "string") return oneLine(found);
  return oneLine(nested(found, kind));
}

function nested(found: Json, kind: string): string {
  if (found !== null && typeof found === "object" && !Array.isArray(found)) {
    if (kind === "thread" || ("os_id" in found && "role" in found)) return `${found.id} ${found.name || found.role}`;
    if (typeof found.name === "string") return found.name;
  }
  if (isValue(found)) return valued(found);
  if (Array.isArray(found) && found.length > 0 && found.every(isArgument)) return found.map(argument).join(", ");
  if (Array.isArray(found) && found.every((one) => one !== null && typeof one === "object" && "name" in one)) {
    return found.map((one) => (one as { name: string }).name).join(" < ");
  }
  if (found !== null && typeof found === "object" && !Array.isArray(found)) return members(found);
  return JSON.stringify(found);
}

/** Names and the like, a word before each: `class Shop.Cart, module Shop`; anything deeper as it is written. */
function members(found: { [key: string]: Json }): string {
  const all = Object.entries(found);
  const isFlat = all.every(([, value]) => value === null || typeof value !== "object");
  return isFlat ? all.map(([key, value]) => `${key} ${value}`).join(", ") : JSON.stringify(found);
}

/** What people see of a row's value. */
export function shown(column: Column, row: number): string {
  const words = column.words(row);
  return words === undefined ? value(column.value(row), column.kind) : oneLine(words.trim());
}

/** Whether values of a kind stand at the right. */
export const isNumeric = (kind: string): boolean => ["count", "number", "time", "share", "bytes"].includes(kind);
