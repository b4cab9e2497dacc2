// Sections of a document, whatever view they are of: tables, sentences, facts. A tab for a new view needs no more than this.

import { useMemo, useState } from "preact/hooks";
import type { Column, Document, Json, Section } from "../data/document";
import { count, isNumeric, oneLine, shown, value } from "../data/format";
import { argument, isArgument } from "../data/values";
import { matcher } from "../model/search";
import { Table, type TableColumn } from "./table";
import { Work } from "./work";

interface Props {
  documents: Document[];
  search: string;
  /** The part of the time that is looked at: of rows that are moments, those in it. */
  range: [number, number] | null;
  /** Which rows of a section are looked at; null for all. */
  only?(section: Section): ((row: number) => boolean) | null;
  sort: string;
  onSort(sort: string): void;
  /** The functions that the rows of a section are about, -1 for others, and what leads on to one of them. */
  functions?: { of(section: Section): Int32Array; open(func: number): void };
  /** Keys of sections that are shown elsewhere. */
  without?: string[];
}

/** All sections of some documents. */
export function Sections({ documents, search, range, only, sort, onSort, functions, without }: Props) {
  const sections = documents.flatMap((document) => document.sections.map((section) => ({ document, section })));
  const visible = sections.filter(({ section }) => isShown(section) && !without?.includes(section.packed.key));
  return (
    <div class={`sections${visible.length === 1 ? " single" : ""}`}>
      {visible.map(({ document, section }, index) => (
        <OneSection
          key={`${document.packed.options.join(" ")} ${section.packed.key} ${index}`}
          section={section}
          title={section.packed.title ?? (documents.length > 1 && document !== visible[index - 1]?.document ? titleOf(document) : null)}
          search={search}
          range={range}
          only={only}
          sort={sort}
          onSort={onSort}
          functions={functions}
        />
      ))}
    </div>
  );
}

/** Titles of documents by what was asked for beside their view. */
const TITLES = [["--each", "Each one"], ["--callers", "Who calls them"]];

const titleOf = (document: Document): string =>
  TITLES.find(([option]) => document.packed.options.includes(option))?.[1] ?? document.packed.about.split(";")[0];

/** Columns that only JSON has are for programs; logs have no others. */
function isShown(section: Section): boolean {
  const { columns, nothing, main } = section.packed;
  if (section.rows === 0) return main && nothing !== "";
  return isOfLog(section) || columns.some((column) => column.text !== null);
}

interface OneProps extends Omit<Props, "documents"> {
  section: Section;
  title: string | null;
}

function OneSection({ section, title, search, range, only, sort, onSort, functions }: OneProps) {
  const { style, left_out: leftOut, note, nothing, what } = section.packed;
  const [open, setOpen] = useState<number | null>(null);
  const inTree = useMemo(() => tableColumns(section), [section]);
  // Rows in another order stand below nothing.
  const columns = useMemo(() => (inTree.some(({ key }) => key === sort.replace("-", "")) ? inTree.map((column) => ({ ...column, indent: undefined })) : inTree), [inTree, sort]);
  const rows = useMemo(() => matchingRows(section, columns, search, range, only?.(section) ?? null), [section, columns, search, range, only]);
  const about = useMemo(() => functions?.of(section), [functions, section]);
  const functionAt = (row: number) => about?.[row] ?? -1;
  const lead = (row: number) => (functionAt(row) < 0 ? undefined : () => functions?.open(functionAt(row)));
  const heading = title && <h2>{oneLine(title)}</h2>;
  // What text shows nothing of has no words where there is nothing.
  if (section.rows === 0 && textColumns(section).length === 0) return null;
  if (section.rows === 0) return <section>{heading}<p class="nothing">{nothing}</p></section>;
  if (style === "notes") return <section>{heading}<Notes section={section} /></section>;
  if (style === "facts") return <section>{heading}<Facts section={section} /></section>;
  const all = section.rows + leftOut;
  return (
    <section class="with-table" style={{ "--rows": Math.min(rows.length, 20) + 1 }}>
      {heading}
      <Table
        label={title ?? what}
        rows={rows}
        columns={columns}
        sort={sort}
        onSort={onSort}
        selected={open}
        onSelect={(row) => setOpen(row)}
        onOpen={(row) => (lead(row) ?? (() => setOpen(row)))()}
        below={(row) => section.below(row)}
      />
      {rows.length < section.rows && <p class="note">{count(rows.length)} of {count(section.rows)} rows: those that match the search{range ? " and lie in the chosen part of the time" : ""}{only?.(section) ? " and are chosen in the heat map" : ""}.</p>}
      {leftOut > 0 && <p class="note warning">This page has {count(section.rows)} of {count(all)} {what}: the others had no room in it. The command line shows all.</p>}
      {note && <p class="note">{oneLine(note)}</p>}
      {open !== null && <Details section={section} row={open} onLead={lead(open)} onClose={() => setOpen(null)} />}
    </section>
  );
}

function Notes({ section }: { section: Section }) {
  const column = section.columns.find((column) => column.packed.text === 0) ?? section.columns[0];
  const rows = Array.from({ length: section.rows }, (_, row) => row);
  return <ul class="findings">{rows.map((row) => <li key={row}>{shown(column, row)}</li>)}</ul>;
}

function Facts({ section }: { section: Section }) {
  const [label, text] = textColumns(section);
  const warning = section.column("warning");
  const rows = Array.from({ length: section.rows }, (_, row) => row);
  return (
    <dl class="facts">
      {rows.map((row) => (
        <div key={row} class={warning?.value(row) === true ? "warning" : ""}>
          <dt>{shown(label, row)}</dt>
          <dd>{shown(text, row)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Columns of a section as a table: those of text, in its order where it has some. */
export function tableColumns(section: Section): TableColumn[] {
  const inText = textColumns(section);
  const isLog = isOfLog(section);
  const inTable = isLog || inText.length === 0 ? section.columns.filter((column) => column.packed.json) : inText;
  const columns = inTable.filter((column) => (!isLog && isNumeric(column.kind)) || isFilled(section, column));
  // What a row is about comes first, and stays where a wide table is scrolled.
  const name = columns.find((one) => one.key === "name" && one.kind === "function") ?? columns.find((one) => one.key === "type");
  const first = name ?? columns.find((one) => one.key === "event") ?? columns.find((one) => !isNumeric(one.kind));
  const place = (column: Column) => (column === first ? -1 : isLog ? placeInLog(column) : 0);
  const all = [...columns].sort((a, b) => place(a) - place(b)).map((column) => withRoom(section, tableColumn(column)));
  const { depths } = section.packed;
  if (depths.length > 0 && all.length > 0) all[0].indent = (row) => depths[row];
  const depth = section.column("depth");
  if (isLog && depth && first && ["name", "event"].includes(first.key)) {
    const least = leastOf(section, depth);
    all[0].indent = (row) => depth.number(row) - least;
  }
  return all;
}

const isOfLog = (section: Section): boolean => ["log", "stories", "lines"].includes(section.packed.style);

/** What people read first of a log, in this order; what programs need of it stands behind all others. */
const FIRST_IN_LOGS = ["event", "time_ns", "duration_ns", "number", "thread", "names", "message", "this", "args", "returns"];
const LAST_IN_LOGS = ["signature", "id", "ids", "depth"];

function placeInLog({ key }: Column): number {
  const early = FIRST_IN_LOGS.indexOf(key);
  return early >= 0 ? early : FIRST_IN_LOGS.length + 1 + LAST_IN_LOGS.indexOf(key);
}

/** Whether people see anything in a column. */
function isFilled(section: Section, column: Column): boolean {
  for (let row = 0; row < section.rows; row++) if (shown(column, row) !== "") return true;
  return false;
}

function leastOf(section: Section, column: Column): number {
  let least = Infinity;
  for (let row = 0; row < section.rows; row++) least = Math.min(least, column.number(row));
  return least;
}

/** The columns that people see, in the order of text. */
function textColumns(section: Section): Column[] {
  const shown = section.columns.filter((column) => column.packed.text !== null);
  return shown.sort((a, b) => a.packed.text! - b.packed.text!);
}

/** One column as that of a table. */
export function tableColumn(column: Column): TableColumn {
  const numeric = isNumeric(column.kind);
  const text = (row: number) => shown(column, row);
  return {
    key: column.key,
    title: column.title,
    numeric,
    width: widthOf(column, numeric),
    least: column.kind === "function" ? 32 : column.key === "type" ? 36 : undefined,
    isPath: column.key === "file" || column.key === "path",
    isName: column.kind === "function" || column.key === "type",
    text,
    order: (row) => (numeric ? column.number(row) : text(row).toLowerCase()),
    // Bounds of a share are no shares of their own.
    bar: column.kind === "share" && !/_(low|high)$/.test(column.key) ? (row) => column.number(row) : undefined,
  };
}

/** Rows whose numbers a column has room for. */
const ROWS_WITH_ROOM = 500;

/** The column, wide enough for the numbers that people see first: `+19,016.7 %`, `821 µs to 157 ms`. */
function withRoom(section: Section, column: TableColumn): TableColumn {
  if (!column.numeric) return column;
  let longest = 0;
  for (let row = 0; row < Math.min(section.rows, ROWS_WITH_ROOM); row++) longest = Math.max(longest, column.text(row).length);
  return { ...column, width: Math.max(column.width, longest + 1) };
}

/** Columns of letters. */
function widthOf(column: Column, numeric: boolean): number {
  if (numeric) return Math.max(column.kind === "share" ? 8 : 6, column.title.length + 2);
  if (column.kind === "function") return 60;
  if (column.key === "type") return 44;
  if (column.key === "tiers") return 16;
  if (["event", "phase", "group"].includes(column.key)) return 14;
  return column.key === "message" || column.key === "text" ? 50 : 26;
}

function matchingRows(section: Section, columns: TableColumn[], search: string, range: [number, number] | null, isWanted: ((row: number) => boolean) | null): number[] {
  const is = matcher(search);
  const begin = section.column("time_ns") ?? section.column("start_ns");
  const isMoment = range && begin?.packed.json && section.packed.main;
  const rows: number[] = [];
  for (let row = 0; row < section.rows; row++) {
    if (isWanted && !isWanted(row)) continue;
    if (isMoment && (begin.number(row) < range[0] || begin.number(row) > range[1])) continue;
    if (!is || columns.some((column) => !column.numeric && is(column.text(row)))) rows.push(row);
  }
  return rows;
}

/** Everything that is known of a row. */
function Details({ section, row, onLead, onClose }: { section: Section; row: number; onLead?: () => void; onClose(): void }) {
  return (
    <aside class="details" aria-label="Details of the row">
      <button type="button" class="close" onClick={onClose} aria-label="Close the details">×</button>
      {onLead && <button type="button" onClick={onLead}>Callers and callees</button>}
      <Work section={section} row={row} />
      <dl>
        {section.columns.map((column) => {
          const found = column.value(row);
          if (found === undefined || found === null || (typeof found !== "boolean" && value(found, column.kind) === "")) return null;
          return (
            <div key={column.key}>
              <dt>{column.title}</dt>
              <dd>{isList(found) ? <Frames frames={found} /> : value(found, column.kind)}</dd>
            </div>
          );
        })}
      </dl>
      {section.below(row).map((line) => <p key={line}>{oneLine(line)}</p>)}
    </aside>
  );
}

const isList = (found: Json): found is { [key: string]: Json }[] =>
  Array.isArray(found) && found.length > 0 && found.every((one) => one !== null && typeof one === "object" && !Array.isArray(one));

/** Members of a path that say how much of the whole it has. */
const AMOUNTS: [string, (found: Json) => string][] = [
  ["count", (found) => `${count(Number(found))} times`],
  ["total_ns", (found) => value(found, "time")],
];

/** Frames of a stack, arguments, and other lists of things with names; a step a line. */
function Frames({ frames }: { frames: { [key: string]: Json }[] }) {
  if (frames.every((one) => isList(one.frames))) {
    return (
      <>
        {frames.map((path, at) => (
          <div class="path-of" key={at}>
            <p>{AMOUNTS.filter(([key]) => typeof path[key] === "number").map(([key, words]) => words(path[key])).join(", ")}</p>
            <Frames frames={path.frames as { [key: string]: Json }[]} />
          </div>
        ))}
      </>
    );
  }
  const text = (frame: { [key: string]: Json }) => {
    if (isArgument(frame)) return oneLine(argument(frame));
    const name = frame.signature ?? frame.name ?? frame.type;
    const place = frame.file ? ` in ${frame.file}:${frame.line}` : frame.module ? ` [${frame.module}]` : "";
    return oneLine(name === undefined ? JSON.stringify(frame) : `${name}${place}`);
  };
  return <ol class="frames">{frames.map((frame, at) => <li key={at}>{text(frame)}</li>)}</ol>;
}
