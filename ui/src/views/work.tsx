// Where the time of a request, or of all of a route, went: a bar with a part for each state, as far
// as the tool knows them.

import { AWAITED, type Shade, STATES_OF_TIME } from "../colours";
import type { Section } from "../data/document";
import { share, time } from "../data/format";
import { Mark } from "./mark";

const PARTS: { key: string; shade: Shade }[] = [
  { key: "running_ns", shade: STATES_OF_TIME.running },
  { key: "ready_ns", shade: STATES_OF_TIME.ready },
  { key: "lock_ns", shade: STATES_OF_TIME.lock },
  { key: "blocked_ns", shade: { ...STATES_OF_TIME.waiting, label: "blocked" } },
  { key: "gc_ns", shade: { ...STATES_OF_TIME.suspended, label: "stopped for collections" } },
  { key: "awaited_ns", shade: { ...AWAITED, label: "awaited" } },
];

/** The bar of a row; nothing where the tool does not know what threads did. */
export function Work({ section, row }: { section: Section; row: number }) {
  const all = PARTS.map(({ key, shade }) => ({ shade, ns: section.column(key)?.value(row) }));
  // Without samples of the clock only what was awaited is known, which is no part of a whole.
  const known = all.filter((one): one is { shade: Shade; ns: number } => typeof one.ns === "number");
  if (known.length < all.length) return null;
  const parts = known.filter(({ ns }) => ns > 0);
  const sum = parts.reduce((sum, { ns }) => sum + ns, 0);
  if (sum === 0) return null;
  return (
    <div class="work">
      <p>Where the time went</p>
      <div class="work-bar" aria-hidden="true">
        {parts.map(({ shade, ns }) => <span key={shade.label} class={shade.striped ? "striped" : ""} style={{ width: `${(ns / sum) * 100}%`, backgroundColor: shade.colour }} />)}
      </div>
      <div class="legend">
        {parts.map(({ shade, ns }) => <span key={shade.label}><Mark shade={shade} />{shade.label} <b>{time(ns)}</b> <span class="faint">{share(ns / sum)}</span></span>)}
      </div>
    </div>
  );
}
