// The tabs of the page. A view that is not named here has a tab of its own all the same, made of its sections as they are.

import type { Document, Page } from "./data/document";

export interface Tab {
  id: string;
  title: string;
  /** What the tab shows: sections of documents, or paths in one of several forms. */
  form: "overview" | "sections" | "flame" | "tree" | "functions" | "neighbours" | "timeline" | "gc" | "dominators" | "changes" | "coverage" | "requests" | "request";
  documents: Document[];
}

/** Tabs in their order, with the views that they show; `paths` are shown for every metric. */
const DECLARED: { id: string; title: string; form: Tab["form"]; views: string[] }[] = [
  { id: "summary", title: "Summary", form: "overview", views: ["summary"] },
  { id: "flame", title: "Flame graph", form: "flame", views: ["tree"] },
  { id: "tree", title: "Call tree", form: "tree", views: ["tree"] },
  { id: "functions", title: "Functions", form: "functions", views: ["tree"] },
  { id: "callers", title: "Callers and callees", form: "neighbours", views: ["tree"] },
  { id: "changes", title: "Flame graph", form: "changes", views: ["diff-tree"] },
  { id: "diff-tree", title: "Call tree", form: "sections", views: ["diff-tree"] },
  { id: "timeline", title: "Timeline", form: "timeline", views: ["timeline", "counters"] },
  { id: "counters", title: "Counters", form: "sections", views: ["counters"] },
  { id: "requests", title: "Requests", form: "requests", views: ["requests"] },
  { id: "request", title: "One request", form: "request", views: ["request"] },
  { id: "lines", title: "Lines", form: "sections", views: ["lines"] },
  { id: "allocations", title: "Allocations", form: "sections", views: ["allocations", "survivors"] },
  { id: "heap", title: "Heap", form: "sections", views: ["heap", "roots", "heap-diff", "waste"] },
  { id: "dominators", title: "Dominators", form: "dominators", views: ["dominators"] },
  { id: "gc", title: "GC", form: "gc", views: ["gc"] },
  { id: "coverage", title: "Coverage", form: "coverage", views: ["coverage"] },
  { id: "exceptions", title: "Exceptions", form: "sections", views: ["exceptions"] },
  { id: "threads", title: "Threads", form: "sections", views: ["threads"] },
  { id: "modules", title: "Modules", form: "sections", views: ["modules"] },
  { id: "events", title: "Events", form: "sections", views: ["events"] },
  { id: "flow", title: "Flow", form: "sections", views: ["flow"] },
];
/** How the numbers came about, at the end. */
const LAST = { id: "conditions", title: "Conditions and losses", views: ["conditions", "losses"] };
/** Views whose rows other tabs have. */
const ELSEWHERE = ["functions", "callers", "callees"];

/** Views whose rows are moments that the timeline marks. */
export const MOMENTS = ["exceptions", "events", "gc"];

/** Title of the tab of a view that is not there; null for views that share the tab of another. */
export const titleOfView = (view: string): string | null => DECLARED.find(({ views, form }) => views[0] === view && form !== "changes" && form !== "request")?.title ?? null;

/** A tab without recorded data, and what would have recorded it. */
export function absentTab(page: Page, id: string): { title: string; instruments: string[] } | null {
  const tab = DECLARED.find((one) => one.id === id);
  const missing = tab && page.missing.find(({ view }) => view === tab.views[0]);
  return missing ? { title: tab.title, instruments: missing.instruments } : null;
}

/** The tabs that have something to show, and those of what was recorded and did not happen. */
export function tabsOf(page: Page): Tab[] {
  const of = (views: string[]) => {
    const all = views.flatMap((view) => page.of(view));
    const filled = all.filter((document) => document.hasRows);
    return filled.length > 0 ? filled : all.filter((document) => document.main?.packed.nothing).slice(0, 1);
  };
  const tabs: Tab[] = DECLARED.map(({ id, title, form, views }) => ({ id, title, form, documents: ["sections", "gc", "requests"].includes(form) ? of(views) : of(views).filter((document) => document.hasRows) }));
  const known = new Set([...DECLARED.flatMap((tab) => tab.views), ...LAST.views, ...ELSEWHERE]);
  for (const document of page.documents) {
    if (known.has(document.view)) continue;
    known.add(document.view);
    // A page has the views of one side or of two, never both.
    const name = document.view.replace(/^diff-/, "");
    const title = name.charAt(0).toUpperCase() + name.slice(1);
    tabs.push({ id: document.view, title, form: "sections", documents: page.of(document.view).filter((one) => one.hasRows) });
  }
  tabs.push({ id: LAST.id, title: LAST.title, form: "sections", documents: LAST.views.flatMap((view) => page.of(view)) });
  return tabs.filter((tab) => tab.documents.length > 0);
}
