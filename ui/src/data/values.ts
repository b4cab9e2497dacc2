// Values of the program, arguments, results and fields, in a line: `name = "x", order = Order { Id = 3 }`.

import type { Json } from "./document";

type Members = { [key: string]: Json };

/** Values within values that are written. */
const DEEPEST = 3;
/** Fields or elements of one value that are written. */
const MOST = 6;

const isMembers = (found: Json | undefined): found is Members => found !== null && typeof found === "object" && !Array.isArray(found);

/** Whether JSON is that of an argument. */
export const isArgument = (found: Json): boolean => isMembers(found) && "type" in found && "name" in found && !("signature" in found);

/** Whether JSON is that of an object, a struct, an array or a result. */
export const isValue = (found: Json): boolean => isMembers(found) && typeof found.type === "string" && ["address", "fields", "items", "value", "redacted", "unknown"].some((key) => key in found);

/** `name = value`. */
export function argument(found: Json): string {
  if (!isMembers(found)) return valued(found);
  const value = inner(found, 0);
  return value === "" ? String(found.name) : `${found.name} = ${value}`;
}

/** A value in a line. */
export function valued(found: Json, depth = 0): string {
  if (typeof found === "string") return JSON.stringify(found);
  if (!isMembers(found)) return Array.isArray(found) ? listed(found, depth) : String(found);
  if ("value" in found && !("key" in found)) return inner(found, depth);
  if ("key" in found) return `${valued(found.key, depth)}: ${valued(found.value, depth)}`;
  const why = ["redacted", "unknown", "hidden"].find((reason) => found[reason] === true);
  if (why) return `(${why})`;
  const type = String(found.type ?? "");
  if (typeof found.text === "string") return `${type} ${found.text}`.trim();
  if (typeof found.method === "string") return `${type} ${found.method}`.trim();
  if (Array.isArray(found.items)) return `${type} (${found.length}) ${listed(found.items, depth)}`.trim();
  return isMembers(found.fields) ? `${type} ${fields(found.fields, depth)}`.trim() : type;
}

/** What stands below `value`, or why nothing does. */
function inner(found: Members, depth: number): string {
  const why = ["redacted", "unknown"].find((reason) => found[reason] === true);
  if (why) return `(${why})`;
  return found.value === undefined ? "" : valued(found.value, depth);
}

function fields(found: Members, depth: number): string {
  const all = Object.entries(found);
  if (all.length === 0) return "";
  if (depth >= DEEPEST) return "{ … }";
  const some = all.slice(0, MOST).map(([name, value]) => `${name} = ${valued(value, depth + 1)}`);
  return `{ ${[...some, ...(all.length > MOST ? ["…"] : [])].join(", ")} }`;
}

function listed(found: Json[], depth: number): string {
  if (found.length === 0) return "[]";
  if (depth >= DEEPEST) return "[…]";
  const some = found.slice(0, MOST).map((value) => valued(value, depth + 1));
  return `[${[...some, ...(found.length > MOST ? ["…"] : [])].join(", ")}]`;
}
