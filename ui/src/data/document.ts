// The documents of a page: the JSON of the tool's views, which the page holds packed as columns.

/** A column as it is packed: values by row, or places in the pool. */
export interface PackedColumn {
  key: string;
  title: string;
  kind: string;
  parts?: string[];
  json: boolean;
  csv: boolean;
  /** The place among the columns that people see; null for those that only programs read. */
  text: number | null;
  plain?: boolean;
  values: (number | boolean | null | "" | [number])[];
  words?: number[];
}

interface PackedSection {
  key: string;
  style: string;
  block: number;
  main: boolean;
  title: string | null;
  nothing: string;
  what: string;
  left_out: number;
  note: string | null;
  picked: boolean;
  rows: number;
  depths: number[];
  below: number[];
  columns: PackedColumn[];
}

/** An amount that the rows of a document are measured by. */
export interface Measure {
  name: string;
  title: string;
  unit: string;
  own: string;
  total: string | null;
}

/** Own amounts of a tree's rows by equal pieces of the recorded time. */
export interface Times {
  /** Beginning of the first piece. */
  start_ns: number;
  piece_ns: number;
  /** Rows of each piece. */
  counts: number[];
  /** The rows, each as its distance from the one before it in the piece. */
  rows: number[];
  amounts: number[];
  /** Places of their states, where states are known. */
  states?: number[];
}

/** Times of a tree's rows by state. */
export interface RowStates {
  names: string[];
  /** The rows that have some, each as its distance from the one before it. */
  rows: number[];
  /** Places of the states among the names. */
  states: number[];
  own: number[];
  /** What lies below the row on no other. */
  rest: number[];
  /** What lies on no row: process, thread, state, nanoseconds. */
  beside: [number, number, number, number][];
}

/** Values of a counter by time. */
export interface PackedTrack {
  /** Microseconds of each value: since the interval before it ended, and of its own interval. */
  times: number[];
  values: number[];
  /** Where a value stands for several. */
  least?: number[];
  greatest?: number[];
}

/** What a run did in each equal piece of the recorded time; null of what was not recorded. */
export interface OverTime {
  /** Beginning of the first piece. */
  start_ns: number;
  piece_ns: number;
  cpu: { kind: string; ns: number[] }[] | null;
  pauses: { count: number; total_ns: number; longest_ns: number; ns: number[] } | null;
  heap: { most: number; bytes: (number | null)[] } | null;
  exceptions: { count: number; counts: number[] } | null;
  requests: { count: number; counts: number[] } | null;
}

/** A view without recorded data, and what would have recorded it. */
export interface Missing {
  view: string;
  instruments: string[];
}

export interface PackedDocument {
  key: string;
  view: string;
  about: string;
  options: string[];
  measures: Measure[];
  /** Its paths are those that threads had: a document without this is the same of logical ones. */
  physical?: boolean;
  schema: string;
  metric?: string;
  /** Missing where the document was not asked for yet. */
  sections?: PackedSection[];
  /** When the rows of a tree had their amounts. */
  times?: Times | null;
  /** Times of a tree by state; missing where states are not known. */
  states?: RowStates | null;
  /** Values of each row by time, of counters. */
  tracks?: PackedTrack[] | null;
  /** What happened over time, of the summary. */
  strip?: OverTime | null;
  /** Sums of everything, by thread where the rows are: where there was no room for all paths. */
  whole?: PackedSection;
  /** A part of the time was asked for, and the numbers are sums over the whole run all the same. */
  whole_run?: boolean;
  /** Some requests were chosen, and the document is of all and everything all the same. */
  all_requests?: boolean;
  /** Of what a search matches: its sum, and that of everything. */
  matched?: number;
  all?: number;
  /** Amount of a function that the threads themselves call. */
  threads?: number;
  /** Reason why there is nothing. */
  problem?: string;
}

export interface Process {
  pid: number;
  command: string[] | string;
  runtime: string;
  complete: boolean;
}

export interface Recording {
  command: string[];
  /** The time that was recorded, since the start of the run. */
  since_ns: number;
  until_ns: number;
  instruments: { given: string; filled: string };
  complete: boolean;
  processes: Process[];
  losses: { reason: string; count: number }[];
}

/** A thread of the recording. */
export interface Thread {
  pid: number;
  id: number;
  name: string;
  role: string;
}

export interface Packed {
  format: number;
  tool: string;
  open: string;
  recording: Recording;
  /** How long the run took or was recorded, how it ended, and since when, in the words of the tool. */
  run: string[];
  missing?: Missing[];
  values?: Json[];
  documents: PackedDocument[];
  /** Which reading of the recording this is, where the page is served. */
  revision?: number;
  growing?: boolean;
  threads?: Thread[];
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A value of a row; undefined where the row has none. */
export type Value = Json | undefined;

/** A column that answers with the values of the JSON. */
export class Column {
  readonly key: string;
  readonly title: string;
  readonly kind: string;
  private said: Map<number, string> | undefined;

  constructor(
    readonly packed: PackedColumn,
    private readonly pool: Json[],
  ) {
    this.key = packed.key;
    this.title = packed.title || packed.key;
    this.kind = packed.kind;
  }

  /** The value of a row as JSON has it. */
  value(row: number): Value {
    const value = this.packed.values[row];
    if (Array.isArray(value)) return this.pool[value[0]];
    if (this.packed.plain) return value === "" ? undefined : value;
    return value === -1 ? undefined : this.pool[value as number];
  }

  /** Place of a row's value in the pool, -1 where it has none; for columns that are not plain. */
  place(row: number): number {
    return this.packed.values[row] as number;
  }

  /** The value as a number; 0 where it is none. */
  number(row: number): number {
    const value = this.packed.plain ? this.packed.values[row] : this.value(row);
    return typeof value === "number" ? value : 0;
  }

  /** Words that people see in place of the value. */
  words(row: number): string | undefined {
    const words = this.packed.words;
    if (!words) return undefined;
    if (!this.said) {
      this.said = new Map();
      for (let at = 0; at < words.length; at += 2) this.said.set(words[at], String(this.pool[words[at + 1]]));
    }
    return this.said.get(row);
  }
}

/** A list of rows of a document. */
export class Section {
  readonly columns: Column[];
  readonly rows: number;
  private lines: Map<number, string[]> | undefined;

  constructor(
    readonly packed: PackedSection,
    private readonly pool: Json[],
  ) {
    this.columns = packed.columns.map((column) => new Column(column, pool));
    this.rows = packed.rows;
  }

  column(key: string): Column | undefined {
    return this.columns.find((column) => column.key === key);
  }

  /** Lines below a row. */
  below(row: number): string[] {
    if (!this.lines) {
      this.lines = new Map();
      for (let at = 0; at < this.packed.below.length; at += 2) {
        const row = this.packed.below[at];
        this.lines.set(row, [...(this.lines.get(row) ?? []), String(this.pool[this.packed.below[at + 1]])]);
      }
    }
    return this.lines.get(row) ?? [];
  }

  /** A row as JSON has it. */
  row(row: number): { [key: string]: Json } {
    const all: { [key: string]: Json } = {};
    for (const column of this.columns) {
      if (!column.packed.json) continue;
      const value = column.value(row);
      if (value !== undefined) all[column.key] = value;
      else if (this.packed.picked) all[column.key] = null;
    }
    return all;
  }
}

/** A view of the recording; without sections where it was not asked for yet. */
export class Document {
  readonly key: string;
  readonly view: string;
  readonly sections: Section[];
  /** Sums of everything, where the rows are not all. */
  readonly whole: Section | null;

  constructor(
    readonly packed: PackedDocument,
    pool: Json[],
  ) {
    this.whole = packed.whole ? new Section(packed.whole, pool) : null;
    this.key = packed.key;
    this.view = packed.view;
    this.sections = (packed.sections ?? []).map((section) => new Section(section, pool));
  }

  /** Name of the document that is the same of logical paths. */
  get logicalKey(): string {
    return this.packed.physical ? this.key.replace(/\.physical$/, "") : this.key;
  }

  /** The section that the view is about. */
  get main(): Section | undefined {
    return this.sections.find((section) => section.packed.main);
  }

  /** Whether any section has a row, as far as that is known. */
  get hasRows(): boolean {
    return this.packed.sections === undefined || this.sections.some((section) => section.rows > 0 || section.packed.left_out > 0);
  }

  /** The command line that prints the document. */
  get command(): string {
    return ["clrscope report REC --view", this.view, ...this.packed.options, "--format json"].join(" ");
  }
}

/** Everything that a page holds. */
export class Page {
  readonly documents: Document[];
  /** Names of the documents that are there by logical paths and by those that threads had. */
  readonly twins: Set<string>;
  readonly recording: Recording;
  readonly run: string[];
  readonly tool: string;
  readonly open: string;
  readonly revision: number;
  readonly growing: boolean;
  readonly threads: Thread[];
  readonly missing: Missing[];

  constructor(packed: Packed) {
    if (packed.format !== 1) throw new Error(`the data has format ${packed.format}, but this page knows only format 1`);
    this.documents = packed.documents.map((document) => new Document(document, packed.values ?? []));
    this.twins = new Set(this.documents.filter((document) => document.packed.physical).map((document) => document.logicalKey));
    this.revision = packed.revision ?? 0;
    this.growing = packed.growing ?? false;
    this.threads = packed.threads ?? [];
    this.missing = packed.missing ?? [];
    this.recording = packed.recording;
    this.run = packed.run;
    this.tool = packed.tool;
    this.open = packed.open;
  }

  /** Beginning and end of the recorded time, since the start of the run. */
  get recorded(): [number, number] {
    return [this.recording.since_ns, this.recording.until_ns];
  }

  /** The page with one kind of paths. */
  withPaths(physical: boolean): Page {
    if (this.twins.size === 0) return this;
    const isShown = (document: Document) => (this.twins.has(document.logicalKey) ? (document.packed.physical ?? false) === physical : true);
    return Object.assign(Object.create(Page.prototype) as Page, this, { documents: this.documents.filter(isShown) });
  }

  /** The documents of a view. */
  of(view: string): Document[] {
    return this.documents.filter((document) => document.view === view);
  }
}

/** Unpacks the text of the page's data element. */
export async function unpack(text: string): Promise<Page> {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Page(JSON.parse(await new Response(plain).text()) as Packed);
}
