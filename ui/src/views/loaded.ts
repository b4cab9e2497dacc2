// Documents on their way to what shows them.

import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import type { Document, Page } from "../data/document";
import type { Filters, Source } from "../data/source";
import { type Detail, placesOf, Profile } from "../model/profile";
import type { Functions } from "../model/functions";

export interface Loaded {
  /** As far as they are there; before that those of other filters, or empty ones. */
  documents: Document[];
  isWaiting: boolean;
  problem: string | null;
}

/** Sees to it that documents are there, under filters. */
export function useLoaded(source: Source, wanted: Document[], filters: Filters): Loaded {
  const [, redraw] = useReducer((number: number, _: void) => number + 1, 0);
  const [failure, setFailure] = useState<string | null>(null);
  const last = useRef(new Map<string, Document>());
  const before = useRef<Document[]>([]);
  let isWaiting = false;
  let documents = wanted.map((document) => {
    const found = source.known(document, filters);
    if (found) last.current.set(document.key, found);
    else isWaiting = true;
    return found ?? last.current.get(document.key) ?? document;
  });
  // The same list stays the same, so that nothing is made of it again.
  if (documents.length === before.current.length && documents.every((one, at) => one === before.current[at])) documents = before.current;
  before.current = documents;
  const missing = wanted.filter((document) => !source.known(document, filters));
  useEffect(() => {
    let isGone = false;
    for (const document of missing) {
      source.load(document, filters).then(
        () => {
          if (isGone) return;
          setFailure(null);
          redraw();
        },
        (error: unknown) => !isGone && setFailure(String(error)),
      );
    }
    return () => {
      isGone = true;
    };
  }, [missing.map((document) => document.key).join(), JSON.stringify(filters), source.page.revision]);
  const problem = failure ?? documents.map((one) => one.packed.problem).find((one) => one !== undefined) ?? null;
  return { documents, isWaiting: isWaiting && failure === null, problem };
}

/** An answer of the server about a tree, if there is one to be asked and as soon as it is there. */
export function useAnswer(source: Source, document: Document | undefined, filters: Filters, picture: string | null): Document | null {
  const [found, setFound] = useState<{ question: string; answer: Document } | null>(null);
  const question = source.served && document && picture !== null ? JSON.stringify([document.key, filters.range, filters.threads, filters.requests, picture, source.page.revision]) : null;
  useEffect(() => {
    if (question === null) return;
    let isGone = false;
    source.load(document!, { ...filters, picture: picture! }).then(
      (answer) => !isGone && setFound({ question, answer }),
      () => {},
    );
    return () => {
      isGone = true;
    };
  }, [question]);
  return found !== null && found.question === question ? found.answer : null;
}

/** A closer look is worth it where a node has less than this part of what was asked for last. */
const WORTH = 0.3;
/** Closer looks that are kept. */
const MOST_DETAILS = 12;

/** Closer looks at nodes of a tree, and a way to ask for one. */
export function useDetails(source: Source, asked: Document | undefined, base: Profile | null, filters: Filters, functions: Functions): [Detail[], (path: number[], share: number, isWanted: boolean) => void] {
  const [found, setFound] = useState<{ base: Profile | null; details: Detail[] }>({ base, details: [] });
  const details = useMemo(() => (found.base === base ? found.details : []), [found, base]);
  const shares = useRef(new Map<string, number>());
  const current = useRef(base);
  if (current.current !== base) {
    current.current = base;
    shares.current.clear();
  }
  const ask = (path: number[], share: number, isWanted: boolean) => {
    if (!source.served || !base || !asked || path.length === 0) return;
    const above = Math.min(1, ...[...shares.current].filter(([key]) => `${path.join()},`.startsWith(`${key},`)).map(([, part]) => part));
    // Whoever opens a node wants to see what it calls, however much of the whole it is.
    if (isWanted ? shares.current.has(path.join()) : share >= above * WORTH) return;
    shares.current.set(path.join(), share);
    for (const { pid, place } of placesOf(base, details, path)) {
      source.load(asked, filters, place).then(
        (document) => {
          if (current.current !== base || !document.main || document.main.rows === 0) return;
          const detail = { pid, path, place, profile: new Profile(document, functions) };
          setFound((before) => ({ base, details: [...(before.base === base ? before.details : []).slice(1 - MOST_DETAILS), detail] }));
        },
        () => {},
      );
    }
  };
  return [details, ask];
}

/** The documents of a page by their names; a page that was read again has others of the same names. */
export const byKey = (page: Page, documents: Document[]): Document[] =>
  documents.map((document) => page.documents.find((one) => one.key === document.key) ?? document);
