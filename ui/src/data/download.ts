// What the page shows as files: JSON as the tool prints it, and comma-separated values.

import type { Document, Json, Page, Section } from "./document";

/** The document as `--format json` prints it, but for line breaks. */
export function toJson(page: Page, document: Document): string {
  const { schema, metric } = document.packed;
  let text = `{"schema":${JSON.stringify(schema)},"recording":${JSON.stringify(page.recording)}`;
  if (metric !== undefined) text += `,"metric":${JSON.stringify(metric)}`;
  const others: string[][] = [];
  for (const section of document.sections) {
    const { key, style, block } = section.packed;
    const body = style === "tree" ? tree(section) : style === "single" ? row(section, 0) : list(section);
    if (block > 0) (others[block - 1] ??= []).push(`${JSON.stringify(key)}:${body}`);
    else text += `,${JSON.stringify(key)}:${body}`;
  }
  if (others.length > 0) text += `,"others":[${others.map((members) => `{${members.join(",")}}`).join(",")}]`;
  return `${text}}\n`;
}

const row = (section: Section, at: number): string => JSON.stringify(at < section.rows ? section.row(at) : {});

function list(section: Section): string {
  const rows: string[] = [];
  for (let at = 0; at < section.rows; at++) rows.push(row(section, at));
  return `[${rows.join(",\n")}]`;
}

/** Nested nodes, written without recursion: a path may be as deep as a program's stack. */
function tree(section: Section): string {
  const parts: string[] = ["["];
  let open = 0;
  for (let at = 0; at < section.rows; at++) {
    const depth = section.packed.depths[at];
    if (open > depth) parts.push("]}".repeat(open - depth), ",");
    const text = row(section, at);
    parts.push("\n", text.slice(0, -1), text === "{}" ? "" : ",", '"children":[');
    open = depth + 1;
  }
  parts.push("]}".repeat(open), "]");
  return parts.join("");
}

function field(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows of the document's main section, or of its first, as `--format csv` prints them. */
export function toCsv(document: Document): string {
  const section = document.main ?? document.sections[0];
  if (!section) return "";
  const columns = section.columns.filter((column) => column.packed.csv);
  const keys = columns.flatMap((column) =>
    column.packed.parts?.length ? column.packed.parts.map((part) => `${column.key}_${part}`) : [column.key],
  );
  const lines = [keys.join(",")];
  for (let at = 0; at < section.rows; at++) {
    const fields = columns.flatMap((column) => {
      const value = column.value(at);
      const parts = column.packed.parts ?? [];
      if (parts.length === 0) return [field(value)];
      const object = (value ?? {}) as { [key: string]: Json };
      return parts.map((part) => field(object[part]));
    });
    lines.push(fields.join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** Lets the browser save a text. */
export function save(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
