// Coverage: assemblies, classes and methods with what was run of them, and the source of a file beside them, marked line by line.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Document, Section } from "../data/document";
import { count, oneLine, share } from "../data/format";
import { matcher } from "../model/search";
import type { State } from "../state";
import { tableColumns } from "./section";
import { Table, type TableColumn } from "./table";
import { useVirtual } from "./virtual";

/** Marks of lines by their state: told apart by sign and edge, not by colour alone. */
const MARKS: Record<string, { sign: string; label: string }> = {
  covered: { sign: "✓", label: "run" },
  partly: { sign: "◐", label: "run, but not on all of its branches" },
  not_covered: { sign: "✗", label: "not run" },
};

/** A file with its rows in the section of sources. */
interface SourceFile {
  path: string;
  module: string;
  first: number;
  end: number;
  lines: number;
  covered: number;
}

interface Props {
  document: Document;
  state: State;
  update(change: Partial<State>, push?: boolean): void;
}

export function Coverage({ document, state, update }: Props) {
  const { search, sort } = state;
  const source = document.sections.find((section) => section.packed.key === "source");
  const files = useMemo(() => (source ? filesOf(source) : []), [source]);
  const worst = useMemo(() => [...files].sort((a, b) => b.lines - b.covered - (a.lines - a.covered))[0], [files]);
  const file = files.find((one) => one.path === state.file) ?? worst;
  const tables = document.sections.filter((section) => section !== source && section.rows > 0);
  const show = (section: Section, row: number) => {
    const path = section.column("file")?.value(row);
    if (typeof path === "string") update({ file: path, line: section.column("line")?.number(row) ?? 0 }, true);
  };
  return (
    <div class="covered-code">
      <div class="sections">
        {tables.map((section) => <Sums key={section.packed.key} section={section} search={search} sort={sort} update={update} onSelect={(row) => show(section, row)} />)}
        {source?.packed.note && <p class="note warning">{oneLine(source.packed.note)}</p>}
      </div>
      {source && file ? (
        <Source key={file.path} section={source} file={file} files={files} line={state.line} search={search} update={update} />
      ) : (
        <p class="nothing">{source?.packed.nothing || "No source of the files was found on the machine that made this page."}</p>
      )}
    </div>
  );
}

/** The files of the sources, in their order: the rows of each stand together. */
function filesOf(source: Section): SourceFile[] {
  const [paths, modules, states] = ["file", "module", "state"].map((key) => source.column(key));
  const files: SourceFile[] = [];
  for (let row = 0; row < source.rows; row++) {
    const path = String(paths?.value(row) ?? "");
    let file = files[files.length - 1];
    const module = String(modules?.value(row) ?? "");
    if (!file || file.path !== path || file.module !== module) files.push((file = { path, module, first: row, end: row, lines: 0, covered: 0 }));
    file.end = row + 1;
    const state = states?.value(row);
    if (state !== "none") file.lines++;
    if (state === "covered" || state === "partly") file.covered++;
  }
  return files;
}

interface SumsProps {
  section: Section;
  search: string;
  sort: string;
  update(change: Partial<State>): void;
  onSelect(row: number): void;
}

function Sums({ section, search, sort, update, onSelect }: SumsProps) {
  const { title, what, note } = section.packed;
  const columns = useMemo(() => tableColumns(section).map(narrow), [section]);
  const rows = useMemo(() => {
    const is = matcher(search);
    const all = Array.from({ length: section.rows }, (_, row) => row);
    return is ? all.filter((row) => columns.some((column) => !column.numeric && is(column.text(row)))) : all;
  }, [section, columns, search]);
  return (
    <section class="with-table" style={{ "--rows": Math.min(rows.length, 12) + 1 }}>
      {title && <h2>{oneLine(title)}</h2>}
      <Table label={title ?? what} rows={rows} columns={columns} sort={sort} onSort={(sort) => update({ sort })} selected={null} onSelect={onSelect} />
      {note && <p class="note">{oneLine(note)}</p>}
    </section>
  );
}

/** A column beside the source: numbers have little room, and where there is nothing to have a share of there is no bar. */
const narrow = (column: TableColumn): TableColumn => ({
  ...column,
  width: column.numeric ? Math.max(7, column.title.length + 1) : column.width,
  bar: column.bar && ((row) => (column.text(row) === "-" ? 0 : column.bar!(row))),
});

interface SourceProps {
  section: Section;
  file: SourceFile;
  files: SourceFile[];
  line: number;
  search: string;
  update(change: Partial<State>, push?: boolean): void;
}

function Source({ section, file, files, line, search, update }: SourceProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const list = useVirtual(file.end - file.first, scroll);
  const is = useMemo(() => matcher(search), [search]);
  const of = (key: string) => section.column(key)!;
  const stateOf = (row: number) => String(of("state").value(row));
  useEffect(() => {
    if (line > 0) list.show(Math.min(file.end - file.first, line) - 1);
  }, [file, line]);
  /** First lines of the pieces that were not run, or not on all branches. */
  const missed = useMemo(() => {
    const wants = (row: number) => row >= file.first && ["partly", "not_covered"].includes(stateOf(row));
    return Array.from({ length: file.end - file.first }, (_, at) => at).filter((at) => wants(file.first + at) && !wants(file.first + at - 1));
  }, [section, file]);
  const go = (by: 1 | -1) => {
    const at = (line > 0 ? line : Math.round((scroll.current?.scrollTop ?? 0) / 24)) - 1;
    const next = by > 0 ? missed.find((one) => one > at) : missed.filter((one) => one < at).pop();
    if (next !== undefined) update({ file: file.path, line: next + 1 });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.key !== "n" && event.key !== "p")) return;
    go(event.key === "n" ? 1 : -1);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section class="source" aria-label="Source">
      <div class="source-head">
        <label>
          <span class="unseen">File</span>
          <select value={file.path} title={file.path} onChange={(event) => update({ file: event.currentTarget.value, line: 0 }, true)}>
            {files.map((one) => (
              <option key={one.path} value={one.path}>{`${nameOf(one.path)}: ${one.covered} of ${one.lines} lines`}</option>
            ))}
          </select>
        </label>
        <span>{share(file.lines === 0 ? 1 : file.covered / file.lines)} of lines</span>
        <button type="button" onClick={() => go(-1)} disabled={missed.length === 0} title="Previous lines that were not run (p)">▲ not run</button>
        <button type="button" onClick={() => go(1)} disabled={missed.length === 0} title="Next lines that were not run (n)">▼ not run</button>
      </div>
      <div class="source-lines" role="table" aria-label={nameOf(file.path)} aria-rowcount={file.end - file.first} tabIndex={0} ref={scroll} onKeyDown={onKeyDown}>
        <div role="rowgroup" class="source-body" style={{ height: `${list.height}px` }}>
          {list.items.map((item) => {
            const row = file.first + item.index;
            const state = stateOf(row);
            const mark = MARKS[state];
            const text = String(of("source").value(row) ?? "");
            const branches = of("branches").number(row);
            const gone = of("branches_covered").number(row);
            const classes = `source-line ${state}${line === item.index + 1 ? " at" : ""}${is?.(text) ? " hit" : ""}`;
            return (
              <div role="row" class={classes} key={item.key as number} style={{ top: `${item.start}px` }} aria-rowindex={item.index + 1}>
                <span role="cell" class="number">{item.index + 1}</span>
                <span role="cell" class="sign" title={mark?.label}>
                  <span aria-hidden="true">{mark?.sign ?? ""}</span>
                  <span class="unseen">{mark?.label ?? "no code"}</span>
                </span>
                <span role="cell" class="hits" title={mark && "number of times it was run"}>{mark ? `${count(of("hits").number(row))}×` : ""}</span>
                <span role="cell" class="gone" title={branches > 0 ? "branches that were gone" : undefined}>{branches > 0 ? `${gone}/${branches}` : ""}</span>
                <code role="cell">{oneLine(text)}</code>
              </div>
            );
          })}
        </div>
      </div>
      <p class="legend">
        {Object.entries(MARKS).map(([state, { sign, label }]) => (
          <span key={state} class={`source-key ${state}`}>{sign} {label}</span>
        ))}
        <span class="faint">n, p: next and previous lines that were not run</span>
      </p>
    </section>
  );
}

const nameOf = (path: string): string => oneLine(path.split(/[/\\]/).pop() ?? path);
