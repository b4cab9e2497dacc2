// The summary: findings as cards that lead to their places, what happened over time, and one bar
// of what the time went to.

import { useMemo } from "preact/hooks";
import { EXCEPTION, KINDS_OF_WORK, ofElement } from "../colours";
import type { Document, Missing, OverTime, Page } from "../data/document";
import { bytes, count, share, time } from "../data/format";
import { type Card, cardsOf, type Part, partsOf } from "../model/overview";
import type { Functions } from "../model/functions";
import type { State } from "../state";
import { type Tab, titleOfView } from "../tabs";
import { Mark } from "./mark";
import { Strip } from "./strip";
import { Ticks } from "./ticks";

/** Sections that are shown here in another form than a table. */
export const AS_PICTURES = ["findings", "kinds", "states"];

interface Props {
  document: Document;
  page: Page;
  tabs: Tab[];
  metrics: { value: string }[];
  functions: Functions;
  dark: boolean;
  state: State;
  update(change: Partial<State>, push?: boolean): void;
}

export function Overview({ document, page, tabs, metrics, functions, dark, state, update }: Props) {
  const cards = useMemo(() => cardsOf(document, page, tabs, metrics, functions), [document, page, tabs, metrics]);
  const bars = useMemo(() => document.sections.filter((one) => ["kinds", "states"].includes(one.packed.key)).map((section) => ({ section, parts: partsOf(section) })), [document]);
  const strip = document.packed.strip;
  return (
    <div class="glance">
      {cards.length > 0 && (
        <section aria-label="What stands out">
          <h2>What stands out</h2>
          <ul class="cards">{cards.map((card, at) => <li key={at}><OneCard card={card} update={update} /></li>)}</ul>
        </section>
      )}
      {strip && <Rows strip={strip} kinds={bars.find(({ section }) => section.packed.key === "kinds")?.parts ?? []} whole={page.recorded} tabs={tabs} dark={dark} range={state.range} update={update} />}
      {bars.filter(({ parts }) => parts.length > 0).map(({ section, parts }) => <Stacked key={section.packed.key} title={section.packed.title ?? ""} parts={parts} />)}
      <NotRecorded missing={page.missing} />
    </div>
  );
}

function OneCard({ card: { kind, text, share: part, lead }, update }: { card: Card; update: Props["update"] }) {
  const inner = (
    <>
      <span class="card-kind">{kind}{part !== null && part > 0 && part < 0.9995 && <b>{share(part)}</b>}</span>
      <span class="card-text">{text}</span>
      {lead && <span class="card-lead">{lead.label} →</span>}
    </>
  );
  if (!lead) return <div class="card">{inner}</div>;
  const go = () => update({ tab: lead.tab, sort: "", search: lead.search, ...(lead.func !== null && { func: lead.func }), ...(lead.metric !== null && { metric: lead.metric, zoom: null }) }, true);
  return <button type="button" class="card" onClick={go}>{inner}</button>;
}

/** Height of a row of the strip. */
const HIGH = 36;

interface Row {
  key: string;
  tab: string;
  label: string;
  told: string;
  draw(context: CanvasRenderingContext2D, x: (ns: number) => number): void;
}

/** What was recorded over the run, a row for each. */
function Rows({ strip, kinds, whole, tabs, dark, range, update }: { strip: OverTime; kinds: Part[]; whole: [number, number]; tabs: Tab[]; dark: boolean; range: [number, number] | null; update: Props["update"] }) {
  const rows = useMemo(() => rowsOf(strip, kinds, dark), [strip, kinds, dark]);
  const seen = useMemo((): [number, number] => [whole[0], Math.max(whole[0] + 1, whole[1])], [whole.join()]);
  if (rows.length === 0) return null;
  return (
    <section aria-label="Over time">
      <h2>Over time</h2>
      <div class="over-time">
        {rows.map((row) => (
          <div class="over-row" key={row.key} data-row={row.key}>
            <span class="over-label">
              {tabs.some((tab) => tab.id === row.tab) ? <button type="button" onClick={() => update({ tab: row.tab, sort: "" }, true)}>{row.label}</button> : <span>{row.label}</span>}
              <span class="faint">{row.told}</span>
            </span>
            <Strip seen={seen} range={range} dark={dark} high={HIGH} draw={row.draw} of={[row]} />
          </div>
        ))}
        <div class="over-row axis" aria-hidden="true"><span /><Ticks seen={seen} most={8} /></div>
      </div>
    </section>
  );
}

function rowsOf(strip: OverTime, kinds: Part[], dark: boolean): Row[] {
  const { start_ns: start, piece_ns: piece, cpu, pauses, heap, exceptions, requests } = strip;
  const rows: Row[] = [];
  const bars = (values: number[], colour: string): Row["draw"] => (context, x) => {
    const most = Math.max(1, ...values);
    context.fillStyle = colour;
    values.forEach((value, at) => {
      const high = value > 0 ? Math.max(2, (value / most) * (HIGH - 4)) : 0;
      context.fillRect(x(start + at * piece), HIGH - 1 - high, Math.max(1, x(start + (at + 1) * piece) - x(start + at * piece)), high);
    });
  };
  if (cpu && cpu.length > 0) {
    // The order of the bar below.
    const order = Object.keys(KINDS_OF_WORK);
    const stacked = [...cpu].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    const sums = stacked[0].ns.map((_, at) => stacked.reduce((sum, { ns }) => sum + ns[at], 0));
    const most = Math.max(1, ...sums);
    rows.push({
      key: "cpu", tab: "timeline", label: "CPU by kind",
      told: `${time(kinds.length > 0 ? kinds.reduce((sum, { ns }) => sum + ns, 0) : sums.reduce((sum, ns) => sum + ns, 0))}, at most ${(most / piece).toFixed(1)} processors`,
      draw: (context, x) => sums.forEach((_, at) => {
        let y = HIGH - 1;
        for (const { kind, ns } of stacked) {
          if (ns[at] <= 0) continue;
          const high = (ns[at] / most) * (HIGH - 4);
          context.fillStyle = (KINDS_OF_WORK[kind] ?? KINDS_OF_WORK.unknown).colour;
          context.fillRect(x(start + at * piece), y - high, Math.max(1, x(start + (at + 1) * piece) - x(start + at * piece)), high);
          y -= high;
        }
      }),
    });
  }
  if (pauses) rows.push({
    key: "pauses", tab: "gc", label: "GC pauses",
    told: pauses.count === 0 ? "no collections" : `${count(pauses.count)}, ${time(pauses.total_ns)}, longest ${time(pauses.longest_ns)}`,
    draw: bars(pauses.ns, dark ? "#62b6f0" : "#0b7fc0"),
  });
  if (heap) rows.push({
    key: "heap", tab: "gc", label: "Heap",
    told: `${bytes(heap.most)} at most`,
    draw: (context, x) => {
      context.fillStyle = dark ? "#c08adf" : "#8a5fa0";
      const y = (value: number) => HIGH - 2 - (value / Math.max(1, heap.most)) * (HIGH - 5);
      let before: number | null = null;
      heap.bytes.forEach((value, at) => {
        const now = value ?? before;
        if (now === null) return;
        context.globalAlpha = 0.25;
        context.fillRect(x(start + at * piece), y(now), x(start + (at + 1) * piece) - x(start + at * piece), HIGH - 1 - y(now));
        context.globalAlpha = 1;
        context.fillRect(x(start + at * piece), y(now) - 0.75, x(start + (at + 1) * piece) - x(start + at * piece) + 0.5, 1.5);
        before = now;
      });
    },
  });
  if (exceptions) rows.push({
    key: "exceptions", tab: "exceptions", label: "Exceptions",
    told: exceptions.count === 0 ? "none thrown" : `${count(exceptions.count)} thrown`,
    draw: bars(exceptions.counts, dark ? "#ff7d45" : EXCEPTION.colour),
  });
  if (requests) rows.push({
    key: "requests", tab: "requests", label: "Requests",
    told: requests.count === 0 ? "none served" : `${count(requests.count)} served`,
    draw: bars(requests.counts, dark ? "#4cc9a0" : "#0a8f6b"),
  });
  return rows;
}

/** Parts of a whole as one bar, with a legend. */
function Stacked({ title, parts }: { title: string; parts: Part[] }) {
  const whole = parts.reduce((sum, { ns }) => sum + ns, 0) || 1;
  return (
    <section class="work stacked" aria-label={title}>
      <h2>{title}</h2>
      <div class="work-bar" aria-hidden="true">
        {parts.map(({ label, shade, ns }) => <span key={label} class={shade.striped ? "striped" : ""} title={`${label} ${share(ns / whole)}`} style={{ width: `${(ns / whole) * 100}%`, backgroundColor: ofElement(shade) }} />)}
      </div>
      <ul class="legend">
        {parts.map(({ label, shade, ns, share: part, title }) => <li key={label} title={title}><Mark shade={shade} />{label} <b>{share(part)}</b> <span class="faint">{time(ns)}</span></li>)}
      </ul>
    </section>
  );
}

/** What the page has no tab of, and how to record it. */
function NotRecorded({ missing }: { missing: Missing[] }) {
  const told = missing.map(({ view, instruments }) => ({ title: titleOfView(view), instruments })).filter(({ title }) => title !== null);
  if (told.length === 0) return null;
  return (
    <details class="not-recorded">
      <summary>Not recorded: {told.map(({ title }) => title!.toLowerCase().replace(/^gc$/, "GC")).join(", ")}</summary>
      <ul>{told.map(({ title, instruments }) => <li key={title}>{title}: record with <code>{instruments.map((name) => `-i ${name}`).join(" or ")}</code></li>)}</ul>
    </details>
  );
}
