// Counters above the threads of the timeline, and the choice of them by name.

import { useState } from "preact/hooks";
import { count, time } from "../data/format";
import { pointAt, type Track, withUnit } from "../model/tracks";
import { matcher } from "../model/search";
import { type Sight, Strip } from "./strip";

/** Height of a track on the screen. */
export const TRACK = 44;
/** Counters that are listed for choice at once. */
const MOST_LISTED = 200;

interface StripProps extends Sight {
  track: Track;
}

/** What a counter said over the part of the time that is in sight. */
export function TrackStrip({ track, ...sight }: StripProps) {
  const draw = (context: CanvasRenderingContext2D, x: (ns: number) => number, width: number) => {
    const high = (TRACK - 6) / (track.greatest - track.least || 1);
    const y = (value: number) => TRACK - 3 - (value - track.least) * high;
    const [line, area, spread] = sight.dark ? ["#62b6f0", "#62b6f030", "#62b6f060"] : ["#0b6aa8", "#0b7fc026", "#0b7fc055"];
    let before: { to: number; value: number } | null = null;
    for (const point of track.points) {
      const [from, to] = [x(point.from), Math.max(x(point.to), x(point.from) + 1)];
      if (to >= 0 && from <= width) {
        context.fillStyle = area;
        context.fillRect(from, Math.min(y(point.value), y(0)), to - from, Math.abs(y(point.value) - y(0)));
        context.fillStyle = spread;
        if (point.greatest > point.least) context.fillRect(from, y(point.greatest), to - from, y(point.least) - y(point.greatest));
        context.fillStyle = line;
        context.fillRect(from, y(point.value) - 0.75, to - from, 1.5);
        // Values whose intervals meet are joined; where nothing was measured is a gap.
        if (before && x(before.to) > from - 3) {
          const [top, bottom] = [y(before.value), y(point.value)].sort((a, b) => a - b);
          context.fillRect(from - 0.75, top - 0.75, 1.5, bottom - top + 1.5);
        }
      }
      before = { to: point.to, value: point.value };
    }
  };
  return <Strip {...sight} high={TRACK} draw={draw} of={[track]} />;
}

/** Least and greatest value that a track has room for. */
export const extent = (track: Track): string => `${withUnit(track.least, "")} to ${withUnit(track.greatest, track.unit)}`;

/** What a counter said at a moment. */
export function trackInWords(track: Track, at: number): string {
  const point = pointAt(track, at);
  const name = `${track.key} at ${time(at)}`;
  if (!point) return `${name} · no value`;
  const of = `in ${time(point.from)} to ${time(point.to)}`;
  const spread = point.greatest > point.least ? ` on average, ${withUnit(point.least, "")} to ${withUnit(point.greatest, "")}` : "";
  return `${name} · ${withUnit(point.value, track.unit)}${spread} ${of}`;
}

interface ChoiceProps {
  tracks: Track[];
  shown: Track[];
  /** Whether somebody chose. */
  isChosen: boolean;
  choose(names: string[] | null): void;
}

/** The counters by name, each to be shown or not. */
export function TrackChoice({ tracks, shown, isChosen, choose }: ChoiceProps) {
  const [search, setSearch] = useState("");
  const is = matcher(search);
  const found = is ? tracks.filter((track) => is(track.key)) : tracks;
  const keys = shown.map((track) => track.key);
  const toggle = (key: string) => choose(keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key]);
  return (
    <details class="track-choice">
      <summary>Counters: {count(shown.length)} of {count(tracks.length)} shown</summary>
      <div class="track-search">
        <input type="search" value={search} placeholder="Search counters" aria-label="Search counters" onInput={(event) => setSearch(event.currentTarget.value)} onKeyDown={(event) => event.stopPropagation()} />
        <button type="button" disabled={shown.length === 0} onClick={() => choose([])}>None</button>
        <button type="button" disabled={!isChosen} onClick={() => choose(null)}>As at first</button>
      </div>
      <ul>
        {found.slice(0, MOST_LISTED).map((track) => (
          <li key={track.key}>
            <label title={track.key}>
              <input type="checkbox" checked={keys.includes(track.key)} onChange={() => toggle(track.key)} />
              <span>{track.key}</span> <span class="faint">{extent(track)}</span>
            </label>
          </li>
        ))}
      </ul>
      {found.length > MOST_LISTED && <p class="faint">{count(found.length - MOST_LISTED)} more: search for them by name.</p>}
      {found.length === 0 && <p class="faint">No counter has such a name.</p>}
    </details>
  );
}
