// What the summary shows at a glance: findings with their places, and parts of a whole as one bar.

import { KINDS_OF_WORK, type Shade, STATES_OF_TIME } from "../colours";
import type { Document, Page, Section } from "../data/document";
import { oneLine } from "../data/format";
import type { Tab } from "../tabs";
import type { Functions } from "./functions";

/** A finding, and the place of the page that shows more of it. */
export interface Card {
  kind: string;
  text: string;
  share: number | null;
  lead: Lead | null;
}

/** A place of the page. */
export interface Lead {
  tab: string;
  /** What the card says of it: `Callers and callees of Cart.Total`. */
  label: string;
  /** The function that is looked at there, as addresses call it. */
  func: number | null;
  /** The metric that is shown there, as addresses write it. */
  metric: string | null;
  /** What is searched for there: a function that the page has not asked for yet. */
  search: string;
}

/** Tabs that show views that have none of their own. */
const TAB_OF: Record<string, string> = { callers: "callers", callees: "callers", functions: "functions", tree: "flame", timeline: "timeline" };

/** The findings of the summary. */
export function cardsOf(document: Document, page: Page, tabs: Tab[], metrics: { value: string }[], functions: Functions): Card[] {
  const section = document.sections.find((one) => one.packed.key === "findings");
  if (!section) return [];
  const [text, kind, func, metric, share, command] = ["text", "kind", "function", "metric", "share", "command"].map((key) => section.column(key));
  const known = new Map<string, number>();
  const learn = (one: Section) => {
    const name = one.column("name");
    if (!name || name.kind !== "function") return;
    functions.of(one).forEach((number, row) => number >= 0 && !known.has(String(name.value(row))) && known.set(String(name.value(row)), number));
  };
  document.sections.forEach(learn);
  // The summary's own tables have nearly all functions that findings name.
  const isUnknown = (row: number) => typeof func?.value(row) === "string" && !known.has(String(func.value(row)));
  if (Array.from({ length: section.rows }, (_, row) => row).some(isUnknown)) page.of("functions").flatMap((other) => other.sections).forEach(learn);
  return Array.from({ length: section.rows }, (_, row) => {
    const named = func?.value(row);
    const number = typeof named === "string" ? known.get(named) : undefined;
    const part = share?.value(row);
    const options = String(command?.value(row) ?? "");
    const view = /--view (\S+)/.exec(options)?.[1] ?? "";
    const measure = /--metric (\S+)/.exec(options)?.[1] ?? metric?.value(row);
    const place = metrics.find(({ value }) => value.split(".")[1] === measure)?.value ?? null;
    return {
      kind: String(kind?.value(row) ?? "").replaceAll("_", " "),
      text: oneLine(String(text?.value(row) ?? "")),
      share: typeof part === "number" ? part : null,
      lead: leadOf(view, typeof named === "string" ? named : null, number === undefined ? null : functions.id(number), place, tabs),
    };
  });
}

function leadOf(view: string, named: string | null, func: number | null, metric: string | null, tabs: Tab[]): Lead | null {
  const own = tabs.find((tab) => tab.form !== "tree" && tab.documents.some((document) => document.view === view)) ?? tabs.find((tab) => tab.id === TAB_OF[view]);
  const flame = tabs.find((tab) => tab.form === "flame");
  if (named && func === null && flame && own?.form === "neighbours") return { tab: flame.id, label: `${flame.title}: ${oneLine(named)}`, func, metric, search: named };
  if (own && (own.form !== "neighbours" || func !== null)) {
    const isOfFunction = ["neighbours", "functions"].includes(own.form);
    return { tab: own.id, label: isOfFunction && named ? `${own.title}: ${oneLine(named)}` : own.title, func: isOfFunction ? func : null, metric: isOfFunction || own.form === "flame" ? metric : null, search: "" };
  }
  const callers = tabs.find((tab) => tab.form === "neighbours");
  return func !== null && callers ? { tab: callers.id, label: `${callers.title}: ${oneLine(named!)}`, func, metric, search: "" } : null;
}

/** A part of a whole. */
export interface Part {
  label: string;
  shade: Shade;
  ns: number;
  share: number;
  /** More about it. */
  title: string;
}

/** The rows of a section of kinds of work, or of states, as parts of a whole, in their order. */
export function partsOf(section: Section): Part[] {
  const isKinds = section.packed.key === "kinds";
  const [name, ns, share, text] = [isKinds ? "kind" : "state", "time_ns", "share", "text"].map((key) => section.column(key));
  if (!name || !ns || !share) return [];
  const percent = (key: string, row: number) => section.column(key)?.number(row) ?? 0;
  return Array.from({ length: section.rows }, (_, row) => {
    const key = String(name.value(row));
    const shade = (isKinds ? KINDS_OF_WORK : STATES_OF_TIME)[key] ?? STATES_OF_TIME.unknown;
    const bounds = isKinds ? `${(percent("share_low", row) * 100).toFixed(1)} to ${(percent("share_high", row) * 100).toFixed(1)} %` : "";
    return {
      label: isKinds ? String(text?.value(row) ?? key) : shade.label,
      shade,
      ns: ns.number(row),
      share: share.number(row),
      title: bounds && `95 % interval of the share: ${bounds}`,
    };
  }).filter((part) => part.ns > 0);
}
