// Functions, and the callers and callees of one.

import { useMemo } from "preact/hooks";
import type { Document, Section } from "../data/document";
import { amount, share, value } from "../data/format";
import { codeColour } from "../colours";
import { CUT } from "../model/cut";
import { addsUp, type Library, librariesOf, sumOf } from "../model/libraries";
import { type Func, isType, neighboursOf } from "../model/tree";
import { tableColumns } from "./section";
import type { Shown } from "./shown";
import { Table, type TableColumn } from "./table";

interface Props {
  shown: Shown;
  /** Whether the tool has filtered the table. */
  served: boolean;
  /** The tool's own table, whose numbers are exact. */
  document: Document | undefined;
  /** Functions of the table's rows. */
  rowFunctions: Int32Array | undefined;
  onOpen(func: number): void;
}

/** Every function: the tool's own rows, or sums of the tree where it was changed. */
export function FunctionTable({ shown, served, document, rowFunctions, onOpen }: Props) {
  const { state } = shown;
  const isFiltered = !served && (state.threads.length > 0 || state.range !== null || (shown.times !== null && state.states.length > 0));
  const isChanged = state.changes !== "" || isFiltered || !document?.main || !rowFunctions;
  return isChanged ? <Summed shown={shown} onOpen={onOpen} /> : <Exact shown={shown} document={document} rowFunctions={rowFunctions} onOpen={onOpen} />;
}

function Exact({ shown, document, rowFunctions, onOpen }: { shown: Shown; document: Document; rowFunctions: Int32Array; onOpen(func: number): void }) {
  const { state, update, matching, functions, measure } = shown;
  const section = document.main!;
  const libraries = useMemo(() => (state.nameless ? [] : librariesOf(functions, rowFunctions)), [section, state.nameless]);
  // Rows behind those of the table are libraries.
  const functionAt = (row: number) => (row < section.rows ? rowFunctions[row] : libraries[row - section.rows].func);
  const columns = useMemo(() => {
    const all = tableColumns(section);
    const name = all.find((column) => column.key === "name");
    if (name) name.mark = (row) => codeColour(shown.measure.name, functions[functionAt(row)].code);
    return libraries.length === 0 ? all : all.map((column) => withLibraries(column, shown, section, libraries));
  }, [section, libraries, shown.sums]);
  const rows = useMemo(() => {
    const all: number[] = [];
    for (let row = 0; row < section.rows + libraries.length; row++) {
      const func = functionAt(row);
      const isFolded = row < section.rows && libraries.length > 0 && functions[func].library !== undefined;
      if (!isFolded && (!matching || matching[func])) all.push(row);
    }
    return all;
  }, [section, matching, libraries]);
  const measured = columns.some((column) => column.key === measure.own) ? measure.own : "";
  const left = section.packed.left_out;
  const selected = shown.func === null ? null : (rows.find((row) => functionAt(row) === shown.func) ?? null);
  return (
    <div class="full">
      <Table
        label="Functions"
        rows={rows}
        columns={columns}
        sort={state.sort || measured}
        onSort={(sort) => update({ sort })}
        selected={selected}
        onSelect={(row) => shown.choose(functionAt(row))}
        onOpen={(row) => onOpen(functionAt(row))}
        onDouble={(row) => void (shown.toSource(functionAt(row)) || onOpen(functionAt(row)))}
        onMenu={(row, x, y) => shown.menuOf(functionAt(row), x, y)}
        onKey={(row, event) => shown.keyOf(functionAt(row), event)}
      />
      {left > 0 && <p class="note warning">{left} functions with less had no room in this page; the command line shows all.</p>}
      {section.packed.note && <p class="note">{section.packed.note}</p>}
    </div>
  );
}

/** A column that also has the libraries' rows: what adds up, and of the rest what the tree knows of their frames. */
function withLibraries(column: TableColumn, { functions, measure, sums, upright }: Shown, section: Section, libraries: Library[]): TableColumn {
  const { key } = column;
  const packed = section.column(key)!;
  const number = (library: Library): number | undefined => {
    if (addsUp(key, measure.own)) return sumOf(section, key, library);
    const [whole, own] = [upright.total[0] || 1, sumOf(section, measure.own, library) ?? 0];
    const total = Math.max(sums.total[library.func] ?? 0, own);
    const known: { [key: string]: number } = { exclusive_share: own / whole, inclusive_share: total / whole, [measure.total ?? ""]: total };
    return known[key];
  };
  const words = ({ func }: Library) => (key === "name" ? functions[func].label : key === "module" ? functions[func].module : "");
  const of = (row: number): Library | undefined => libraries[row - section.rows];
  const text = (library: Library) => {
    const found = number(library);
    return found === undefined ? words(library) : value(found, packed.kind);
  };
  return {
    ...column,
    text: (row) => { const library = of(row); return library ? text(library) : column.text(row); },
    order: (row) => { const library = of(row); return library ? (column.numeric ? (number(library) ?? 0) : text(library).toLowerCase()) : column.order(row); },
    bar: column.bar && ((row) => { const library = of(row); return library ? (number(library) ?? 0) : column.bar!(row); }),
  };
}

function Summed({ shown, onOpen }: { shown: Shown; onOpen(func: number): void }) {
  const { state, update, sums, functions, matching } = shown;
  const columns = useMemo(() => sumColumns(shown, (func) => sums.own[func], (func) => sums.total[func]), [shown.upright]);
  const rows = useMemo(() => {
    const all: number[] = [];
    for (let func = 0; func < sums.own.length; func++) {
      if (!isType(functions[func]) && (sums.total[func] > 0 || sums.own[func] > 0) && (!matching || matching[func])) all.push(func);
    }
    return all.sort((a, b) => sums.own[b] - sums.own[a]);
  }, [sums, matching]);
  return (
    <div class="full">
      <Table
        label="Functions"
        rows={rows}
        columns={columns}
        sort={state.sort}
        onSort={(sort) => update({ sort })}
        selected={shown.func}
        onSelect={(func) => shown.choose(func)}
        onOpen={onOpen}
        onDouble={(func) => void (shown.toSource(func) || onOpen(func))}
        onMenu={(func, x, y) => shown.menuOf(func, x, y)}
        onKey={(func, event) => shown.keyOf(func, event)}
      />
      <p class="note">Totals of the paths that the filters and changes above leave{hasCut(shown) ? "; what is too small for this page has a row of its own, so that functions have at least as much as is said here" : ""}.</p>
    </div>
  );
}

/** Whether there was no room for some paths. */
const hasCut = ({ functions, sums }: Shown): boolean => functions.some((func, at) => func.code === CUT && sums.total[at] > 0);

/** Columns of rows that are functions: own amount, total, share, name, module. */
function sumColumns(shown: Shown, own: ((func: number) => number) | null, total: (func: number) => number): TableColumn[] {
  const { functions, measure, upright } = shown;
  const whole = upright.total[0] || 1;
  const of = (value: number) => (value > 0 ? amount(value, measure.unit) : "");
  const label = (func: number) => (func < 0 ? "(threads)" : functions[func].label);
  const columns: TableColumn[] = [
    { key: "total", title: measure.title, numeric: true, width: 11, text: (func) => of(total(func)), order: total },
    { key: "share", title: "share", numeric: true, width: 8, text: (func) => share(total(func) / whole), order: total, bar: (func) => total(func) / whole },
  ];
  if (own) columns.unshift({ key: "self", title: "self", numeric: true, width: 11, text: (func) => of(own(func)), order: own });
  columns.unshift(
    { key: "name", title: "function", numeric: false, isName: true, width: 60, text: label, order: (func) => label(func).toLowerCase(), mark: (func) => (func < 0 ? "#d6d6d6" : codeColour(measure.name, functions[func].code)) },
  );
  columns.push(
    { key: "module", title: "module", numeric: false, width: 26, text: (func) => functions[func]?.module ?? "", order: (func) => functions[func]?.module ?? "" },
  );
  return columns;
}

/** Who calls a function, and what it calls. */
export function CallersAndCallees({ shown, onOpen, ask }: { shown: Shown; onOpen(func: number): void; ask(func: number): Document | null }) {
  const { state, update, functions, upright, sums, measure } = shown;
  const func = shown.func ?? first(functions, sums.own);
  const answer = ask(func);
  const found = useMemo(() => (answer ? shown.neighboursOf(answer) : neighboursOf(upright, func)), [upright, func, answer]);
  if (func < 0 || !functions[func]) return <p class="nothing">Nothing to show.</p>;
  const whole = upright.total[0] || 1;
  const side = (title: string, all: Map<number, number>) => (
    <section class="with-table" style={{ "--rows": Math.min(12, Math.max(2, all.size)) + 1 }}>
      <h2>{title}</h2>
      {all.size === 0 ? (
        <p class="nothing">None.</p>
      ) : (
        <Table
          label={title}
          rows={[...all.keys()].sort((a, b) => all.get(b)! - all.get(a)!)}
          columns={sumColumns(shown, null, (other) => all.get(other) ?? 0)}
          sort={state.sort}
          onSort={(sort) => update({ sort })}
          selected={null}
          onSelect={() => {}}
          onOpen={(other) => other >= 0 && onOpen(other)}
          onMenu={(other, x, y) => other >= 0 && shown.menuOf(other, x, y)}
          onKey={(other, event) => other >= 0 && shown.keyOf(other, event)}
        />
      )}
    </section>
  );
  return (
    <div class="sections">
      {side("Callers", found.callers)}
      <section class="of">
        <h2><span class="mark" style={{ background: codeColour(measure.name, functions[func].code) }} />{functions[func].label}</h2>
        <p>{functions[func].signature} <span class="faint">[{functions[func].module}]</span></p>
        <p>
          {measure.title} {hasCut(shown) ? "at least " : ""}{amount(sums.total[func], measure.unit)} ({share(sums.total[func] / whole)}), self {amount(sums.own[func], measure.unit)} ({share(sums.own[func] / whole)})
        </p>
        <p class="note">A double click or Enter goes on to a caller or callee.</p>
      </section>
      {side("Callees", found.callees)}
    </div>
  );
}

/** Where nobody chose: the function of the own code with the largest amount, of all code where no own code has one. */
function first(functions: Func[], amounts: Float64Array): number {
  const isOwn = (func: number) => functions[func]?.code === "own" && amounts[func] > 0;
  let best = -1;
  for (let at = 0; at < amounts.length; at++) {
    if (best < 0 || (isOwn(at) && !isOwn(best)) || (isOwn(at) === isOwn(best) && amounts[at] > amounts[best])) best = at;
  }
  return best;
}
