// Requests: a heat map of each by time and duration, from which some are chosen; then the tables.

import { useMemo } from "preact/hooks";
import type { Document, Section } from "../data/document";
import { count, oneLine } from "../data/format";
import { heatMapOf } from "../model/heatmap";
import { type Chosen, type Group, groupsOf, isChosen, type Requests as Rows, requestsOf, writtenGroup } from "../model/requests";
import type { State } from "../state";
import { Heat } from "./heatmap";
import { Sections } from "./section";

interface Props {
  documents: Document[];
  /** The same of all requests, whichever were chosen. */
  all: Document[];
  /** Duration of the run. */
  whole: [number, number];
  state: State;
  /** The tab that shows the work of chosen requests; null where nobody can be asked for that. */
  workTab: string | null;
  update(change: Partial<State>, push?: boolean): void;
}

export function RequestsTab({ documents, all, whole, state, workTab, update }: Props) {
  const each = all.map((document) => document.main).find((section) => requestsOf(section) !== null);
  // Chosen requests stand next to where they were chosen.
  const ordered = state.requests ? [...documents].sort((a, b) => Number(requestsOf(b.main) !== null) - Number(requestsOf(a.main) !== null)) : documents;
  const only = useMemo(() => (state.requests ? rowsOf(state.requests) : undefined), [state.requests]);
  return (
    <div class="collections">
      {each && <OverTime section={each} whole={whole} state={state} workTab={workTab} update={update} />}
      <Sections documents={ordered} search={state.search} range={state.range} only={only} sort={state.sort} onSort={(sort) => update({ sort })} />
    </div>
  );
}

/** Which rows of a section are chosen requests; all of a section of something else. */
const rowsOf = (chosen: Chosen) => (section: Section): ((row: number) => boolean) | null => {
  const requests = requestsOf(section);
  return requests && ((row) => isChosen(requests, row, chosen));
};

interface OverTimeProps extends Omit<Props, "documents" | "all"> {
  section: Section;
}

function OverTime({ section, whole, state, workTab, update }: OverTimeProps) {
  const requests = useMemo(() => requestsOf(section)!, [section]);
  const groups = useMemo(() => groupsOf(requests), [requests]);
  const shown = groups.find(({ group }) => writtenGroup(group) === state.map) ?? groups[0];
  const columns = innerWidth < 600 ? 24 : 60;
  const map = useMemo(() => shown && heatMapOf(requests, shown.group, state.range ?? [whole[0], lastOf(requests, whole[1])], columns), [requests, shown, state.range, whole.join(), columns]);
  if (!shown) return null;
  const canShowWork = workTab !== null && shown.group.direction === "served";
  const choose = (chosen: Chosen | null) => update({ requests: chosen, ...(chosen && canShowWork ? { tab: workTab, zoom: null, sort: "" } : {}) }, true);
  const leftOut = section.packed.left_out;
  return (
    <figure class="heat">
      <figcaption>
        <label>
          <span class="unseen">Requests in the heat map</span>
          <select value={writtenGroup(shown.group)} onChange={(event) => update({ map: event.currentTarget.value }, true)}>
            {groups.map(({ group, count: of }) => <option key={writtenGroup(group)} value={writtenGroup(group)}>{labelOf(group)} ({count(of)})</option>)}
          </select>
        </label>
        <span class="faint">how long requests took, by when they began</span>
      </figcaption>
      {map ? (
        <Heat map={map} chosen={state.requests} leadsTo={canShowWork ? "the flame graph of its requests" : "the rows of its requests below"} choose={choose} />
      ) : (
        <p class="nothing">{state.range ? "None of these requests began in the chosen part of the time." : "All of these requests began before the recording, so how long they took is unknown."}</p>
      )}
      {leftOut > 0 && <p class="note warning">The map has the {count(section.rows)} requests that took longest, of {count(section.rows + leftOut)}.</p>}
    </figure>
  );
}

const labelOf = ({ direction, route }: Group): string => (route === null ? "all served" : `${direction} ${oneLine(route)}`);

/** End of the run; of one that grows, requests may be known already that began after what is known of its end. */
function lastOf(requests: Rows, whole: number): number {
  let last = whole;
  for (let row = 0; row < requests.rows; row++) last = Math.max(last, requests.began(row));
  return last;
}
