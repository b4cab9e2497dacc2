// Where documents come from: the page's own data, or the server that the page came from.

import { type Chosen, parametersOf } from "../model/requests";
import { Document, type Json, type Packed, type PackedDocument, Page, unpack } from "./document";

/** What is shown of a recording, as far as the server can choose it. */
export interface Filters {
  /** A part of the time, nanoseconds since the start. */
  range: [number, number] | null;
  /** Threads by process and number; none means all. */
  threads: string[];
  /** States of the time of paths; none means all. */
  states?: string[];
  /** Requests whose work is shown; null for everything. */
  requests?: Chosen | null;
  /** Changes of trees that are asked for, as a part of an address; empty for trees as they are. */
  picture?: string;
}

/** A node of a tree: the process, the place among its roots, then among the children of each node. */
export type Place = number[];

export interface Source {
  page: Page;
  /** Whether documents are asked for one by one, with the filters. */
  readonly served: boolean;
  /** A document under filters, if it is there. */
  known(document: Document, filters: Filters, below?: Place): Document | undefined;
  /** Asks for it. */
  load(document: Document, filters: Filters, below?: Place): Promise<Document>;
  /** Calls when the recording has grown, or nobody answers any more. */
  follow(changed: (standing: Standing) => void): void;
}

/** How the recording and the server stand. */
export type Standing = "still" | "recording" | "ended" | "gone";

/** Time between two looks at a recording that grows. */
const LOOK_EVERY = 1_000;
/** Documents that are kept. */
const MOST_KEPT = 60;

/** Everything is there already. */
export class Whole implements Source {
  readonly served = false;

  constructor(readonly page: Page) {}

  known(document: Document): Document {
    return document;
  }

  load(document: Document): Promise<Document> {
    return Promise.resolve(document);
  }

  follow(): void {}
}

/** The server of `clrscope view`, which this page came from. */
export class Served implements Source {
  readonly served = true;
  private readonly kept = new Map<string, Document>();
  private readonly asked = new Map<string, Promise<Document>>();

  constructor(public page: Page) {}

  known(document: Document, filters: Filters, below?: Place): Document | undefined {
    return this.kept.get(this.address(document, filters, below));
  }

  load(document: Document, filters: Filters, below?: Place): Promise<Document> {
    const address = this.address(document, filters, below);
    const known = this.kept.get(address);
    if (known) return Promise.resolve(known);
    let answer = this.asked.get(address);
    if (!answer) {
      answer = asked<PackedDocument & { values?: Json[] }>(address).then((packed) => {
        const found = new Document({ ...document.packed, sections: [], ...packed }, packed.values ?? []);
        if (this.kept.size >= MOST_KEPT) this.kept.delete(this.kept.keys().next().value!);
        this.kept.set(address, found);
        return found;
      });
      this.asked.set(address, answer);
      void answer.catch(() => {}).finally(() => this.asked.delete(address));
    }
    return answer;
  }

  follow(changed: (standing: Standing) => void): void {
    const look = async () => {
      try {
        const { revision, growing, over, problem } = await asked<{ revision: number; growing: boolean; over: boolean; problem?: string }>("standing");
        if (problem === undefined && revision !== this.page.revision) {
          const page = await indexOf();
          if (page) this.page = page;
          this.kept.clear();
        }
        changed(!growing ? "still" : over ? "ended" : "recording");
        if (growing || problem !== undefined) setTimeout(() => void look(), LOOK_EVERY);
      } catch {
        changed("gone");
        setTimeout(() => void look(), 5 * LOOK_EVERY);
      }
    };
    void look();
  }

  /** Numbers and the names of documents need no escaping. */
  private address(document: Document, { range, threads, states, requests, picture }: Filters, below?: Place): string {
    const parts = [`key=${document.key}`];
    if (picture && document.view === "tree") parts.push(picture);
    if (range) parts.push(`since=${Math.round(range[0])}`, `until=${Math.round(range[1])}`);
    if (threads.length > 0) {
      const [pid] = threads[0].split(".");
      // A question is about the threads of one process.
      parts.push(`threads=${[pid, ...threads.filter((one) => one.startsWith(`${pid}.`)).map((one) => one.split(".")[1])].join(".")}`);
    }
    if (states && states.length > 0 && ["tree", "functions"].includes(document.view)) parts.push(`states=${states.join(",")}`);
    if (requests) parts.push(...parametersOf(requests));
    if (below) parts.push(`below=${below.join(".")}`);
    // Which reading it is of is for this page alone.
    return `document?${parts.join("&")}#${this.page.revision}`;
  }
}

async function asked<T>(address: string): Promise<T> {
  const answer = await fetch(address.split("#")[0], { credentials: "omit", referrerPolicy: "no-referrer" });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return (await answer.json()) as T;
}

async function indexOf(): Promise<Page | null> {
  const packed = await asked<Packed & { problem?: string }>("index");
  return packed.problem === undefined ? new Page(packed) : null;
}

/** The source of the page that this program stands in. */
export async function sourceOf(data: HTMLElement): Promise<Source> {
  if (data.dataset.served === undefined) return new Whole(await unpack(data.textContent ?? ""));
  for (;;) {
    const page = await indexOf();
    if (page) return new Served(page);
    // A recording that has just begun.
    await new Promise((done) => setTimeout(done, LOOK_EVERY));
  }
}
