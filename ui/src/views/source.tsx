// The source of one function, above the lines of all: where a double click on it leads.

import { useMemo } from "preact/hooks";
import type { Document, Section } from "../data/document";
import { oneLine, shown } from "../data/format";

interface Props {
  /** Documents of lines. */
  documents: Document[];
  func: number;
  label: string;
  /** The functions that the rows of a section are about. */
  of(section: Section): Int32Array;
  onClose(): void;
}

/** Rows of the sources that stand together, and the file that they are of. */
interface Piece {
  section: Section;
  file: string;
  rows: number[];
}

export function FunctionSource({ documents, func, label, of, onClose }: Props) {
  const { pieces, places } = useMemo(() => sourceOf(documents, func, of), [documents, func, of]);
  return (
    <section class="function-source" aria-label={`Source of ${label}`}>
      <h2>
        Source of {label}{" "}
        <button type="button" class="chip" aria-label="Close: source of the function" onClick={onClose}>×</button>
      </h2>
      {pieces.map((piece) => <Lines key={`${piece.file} ${piece.rows[0]}`} piece={piece} />)}
      {pieces.length === 0 && (
        <p class="nothing">
          {places.length === 0
            ? "None of its lines has an amount here: no symbol file (PDB) of its assembly was found, or its whole amount is in what it called."
            : `Its source is not in this page: ${places.map(oneLine).join(", ")}. Pages of clrscope view and of report --format html --source have sources; if these are elsewhere, add --source-root FOLDER.`}
        </p>
      )}
    </section>
  );
}

function Lines({ piece: { section, file, rows } }: { piece: Piece }) {
  const [line, part, text] = ["line", "share", "source"].map((key) => section.column(key)!);
  return (
    <>
      <p class="note">{oneLine(file)} <span class="heat-key" aria-hidden="true">{HEAT.map((least, at) => <span class="source-line" data-heat={at + 1} key={least}>{at === 0 ? "0.1" : least * 100} %</span>)}</span></p>
      <div class="source-lines" role="table" aria-label={oneLine(file)}>
        <div role="rowgroup">
          {rows.map((row) => (
            <div role="row" class="source-line" data-heat={heatOf(part.number(row)) ?? undefined} key={row}>
              <span role="cell" class="number">{shown(line, row)}</span>
              <span role="cell" class="hits">{part.number(row) > 0 ? shown(part, row) : ""}</span>
              <code role="cell">{oneLine(String(text.value(row) ?? ""))}</code>
            </div>
          ))}
        </div>
      </div>
    </>
  );
}

/** Shares from which on lines are warmer. */
const HEAT = [0.0005, 0.01, 0.05, 0.15, 0.4];

/** How warm a line with a share is, from 1 to 5; what rounds to 0.0 % is cold. */
const heatOf = (part: number): number | null => HEAT.filter((least) => part >= least).length || null;

/** The pieces of sources that have lines of a function, and all places of it. */
function sourceOf(documents: Document[], func: number, of: (section: Section) => Int32Array): { pieces: Piece[]; places: string[] } {
  const pieces: Piece[] = [];
  const places: string[] = [];
  for (const { main, sections } of documents) {
    const [file, line] = [main?.column("file"), main?.column("line")];
    if (!main || !file || !line) continue;
    const own = new Set<string>();
    of(main).forEach((about, row) => about === func && own.add(`${file.value(row)}:${line.value(row)}`));
    places.push(...own);
    const source = sections.find((section) => section.packed.key === "source");
    if (source) pieces.push(...piecesOf(source).filter((piece) => isOf(piece, own)));
  }
  return { pieces, places: [...new Set(places)] };
}

/** Lines that follow each other in a file. */
function piecesOf(section: Section): Piece[] {
  const [files, lines] = [section.column("file")!, section.column("line")!];
  const pieces: Piece[] = [];
  for (let row = 0; row < section.rows; row++) {
    const last = pieces[pieces.length - 1];
    const file = String(files.value(row));
    const goesOn = last?.file === file && lines.number(row) === lines.number(last.rows[last.rows.length - 1]) + 1;
    if (goesOn) last.rows.push(row);
    else pieces.push({ section, file, rows: [row] });
  }
  return pieces;
}

const isOf = ({ section, file, rows }: Piece, own: Set<string>): boolean => rows.some((row) => own.has(`${file}:${section.column("line")!.value(row)}`));
