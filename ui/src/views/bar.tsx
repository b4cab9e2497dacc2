// The bar above a tab: metric, threads, search, changes as chips, downloads.

import type { RefObject } from "preact";
import { share } from "../data/format";
import type { Func } from "../model/tree";
import { PRESETS, chipOf, type Transform } from "../model/transforms";
import type { ThreadInfo } from "../model/profile";
import type { State } from "../state";

export interface Choice {
  value: string;
  label: string;
}

interface PathsProps {
  metrics: Choice[];
  metric: string;
  threads: ThreadInfo[];
  state: State;
  changes: Transform[];
  functions: Func[];
  /** Whether there is nameless native code. */
  canFold: boolean;
  /** Whether any of it is time in which threads waited. */
  canWait: boolean;
  update(change: Partial<State>, push?: boolean): void;
  setChanges(changes: Transform[]): void;
}

/** Choices of tabs that show paths. */
export function PathBar({ metrics, metric, threads, state, changes, functions, canFold, canWait, update, setChanges }: PathsProps) {
  return (
    <>
      {metrics.length > 1 ? (
        <label>
          <span class="unseen">Metric</span>
          <select value={metric} onChange={(event) => update({ metric: event.currentTarget.value, zoom: null }, true)}>
            {metrics.map(({ value, label }) => <option key={value} value={value}>{label}</option>)}
          </select>
        </label>
      ) : (
        <span class="only">{metrics[0]?.label}</span>
      )}
      {threads.length > 1 && (
        <label>
          <span class="unseen">Threads</span>
          <select
            value={state.threads.length === 1 ? state.threads[0] : ""}
            onChange={(event) => update({ threads: event.currentTarget.value ? [event.currentTarget.value] : [], zoom: null }, true)}
          >
            <option value="">{state.threads.length > 1 ? `${state.threads.length} threads` : "all threads"}</option>
            {threads.map(({ key, label }) => <option key={key} value={key}>{label}</option>)}
          </select>
        </label>
      )}
      <label class="check">
        <input type="checkbox" checked={state.invert} onChange={() => update({ invert: !state.invert, zoom: null }, true)} /> invert
      </label>
      {canFold && (
        <label class="check" title="native functions without names become one frame of their library">
          <input type="checkbox" checked={!state.nameless} onChange={() => update({ nameless: !state.nameless, zoom: null }, true)} /> fold nameless code
        </label>
      )}
      {PRESETS.map(({ kind, label, help }) => {
        const isOn = changes.some((one) => one.kind === kind);
        if (kind === "w" && !canWait && !isOn) return null;
        const toggled = () => (isOn ? changes.filter((one) => one.kind !== kind) : [...changes, { kind, path: [] }]);
        return (
          <label class="check" title={help} key={kind}>
            <input type="checkbox" checked={isOn} onChange={() => setChanges(toggled())} /> {label}
          </label>
        );
      })}
      {changes.length > 0 && (
        <span class="chips" role="group" aria-label="Changes">
          {changes.map((change, at) => {
            const label = chipOf(change, functions);
            return (
              <button type="button" class="chip" key={`${at}${label}`} title={label} aria-label={`Undo: ${label}`} onClick={() => setChanges(changes.filter((_, other) => other !== at))}>
                <span>{label}</span> ×
              </button>
            );
          })}
        </span>
      )}
    </>
  );
}

interface SearchProps {
  field: RefObject<HTMLInputElement | null>;
  search: string;
  share: number | null;
  /** There may be more. */
  isLeast: boolean;
  onSearch(search: string): void;
  onNext(by: number): void;
  onLeave(): void;
}

export function Search({ field, search, share: matched, isLeast, onSearch, onNext, onLeave }: SearchProps) {
  return (
    <span class="search">
      <input
        type="search"
        ref={field}
        value={search}
        placeholder="Search ( / )"
        aria-label="Search: words with commas between them, or /a regular expression/"
        onInput={(event) => onSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") onNext(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") onLeave();
          else if (event.key === "f" && (event.ctrlKey || event.metaKey)) event.currentTarget.blur();
          else return;
          if (event.key !== "f") event.preventDefault();
        }}
      />
      <output>{matched === null ? "" : `matched ${isLeast ? "at least " : ""}${share(matched)}`}</output>
    </span>
  );
}
