// The timeline: a strip per thread with what it was about, marks for what happened, tracks of counters above them, and a range
// that can be chosen.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Document, Page } from "../data/document";
import { count, time } from "../data/format";
import { EXCEPTION, ofElement, STATES, stateColour } from "../colours";
import { isIdle, type Lane, type Lanes, lanesOf, type Marker, markersOf, together } from "../model/lanes";
import { tracksOf, unasked } from "../model/tracks";
import type { State } from "../state";
import { type Sight, Strip } from "./strip";
import { Ticks } from "./ticks";
import { extent, TRACK, TrackChoice, trackInWords, TrackStrip } from "./tracks";
import { useVirtual, ROW } from "./virtual";

/** Marks of a kind, as shapes that are told apart without colour. */
const SHAPES: Record<Marker["kind"], { label: string; shape: string; colour: string }> = {
  exception: EXCEPTION,
  collection: { label: "garbage collection", shape: "■", colour: "#0b7fc0" },
  compilation: { label: "compilation", shape: "◆", colour: "#0a8f6b" },
  load: { label: "load", shape: "●", colour: "#8a5fa0" },
  other: { label: "other event", shape: "|", colour: "#777777" },
};

interface Props {
  documents: Document[];
  page: Page;
  state: State;
  update(change: Partial<State>, push?: boolean): void;
  dark: boolean;
}

export function Timeline({ documents, page, state, update, dark }: Props) {
  const lanes = useMemo(() => lanesOf(documents.find((one) => one.view === "timeline"), page.recording.processes[0]?.pid ?? 0, page.recorded[0]), [documents, page.recorded[0]]);
  const tracks = useMemo(() => tracksOf(documents.find((one) => one.view === "counters")), [documents]);
  const shown = useMemo(() => (state.counters ? tracks.filter((track) => state.counters!.includes(track.key)) : unasked(tracks)), [tracks, state.counters?.join("\n")]);
  const markers = useMemo(() => markersOf(page, documents), [page, documents]);
  const byLane = useMemo(() => grouped(markers), [markers]);
  const scroll = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  // Idle threads stand below the others, under a line of their own; a single one needs none.
  const { rows, idle } = useMemo(() => folded(lanes, isOpen), [lanes, isOpen]);
  const list = useVirtual(rows.length, scroll, shown.length * TRACK);
  const [told, setTold] = useState("");
  const [begin, end] = page.recorded;
  const whole = Math.max(end, begin + lanes.pieces * lanes.piece);
  const range = state.range;
  const drag = useRef<number | null>(null);
  // The part of the recorded time that is in sight.
  const [seen, setSeen] = useState<[number, number]>([begin, whole]);
  const growing = useRef(whole);
  useEffect(() => {
    // A run that goes on stays in sight as a whole.
    setSeen(([from, to]) => (from === begin && to === growing.current ? [begin, whole] : [from, Math.min(to, whole)]));
    growing.current = whole;
  }, [whole]);
  const see = (from: number, to: number) => {
    const wide = Math.max(lanes.piece, Math.min(whole - begin, to - from));
    const start = Math.max(begin, Math.min(whole - wide, from));
    setSeen([start, start + wide]);
  };
  const zoomAround = (at: number, factor: number) => see(at - (at - seen[0]) * factor, at + (seen[1] - at) * factor);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [wide, middle] = [seen[1] - seen[0], (seen[0] + seen[1]) / 2];
    const pan = (by: number) => see(seen[0] + by * wide, seen[1] + by * wide);
    const actions: Record<string, () => void> = {
      KeyW: () => zoomAround(middle, 0.7),
      KeyS: () => zoomAround(middle, 1 / 0.7),
      KeyA: () => pan(-0.2),
      KeyD: () => pan(0.2),
      ArrowLeft: () => pan(-0.2),
      ArrowRight: () => pan(0.2),
      Digit0: () => see(begin, whole),
      Numpad0: () => see(begin, whole),
      Escape: () => (range ? update({ range: null }, true) : see(begin, whole)),
    };
    const byKey: Record<string, () => void> = { "+": actions.KeyW, "=": actions.KeyW, "-": actions.KeyS };
    const action = byKey[event.key] ?? actions[event.code];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  };
  useEffect(() => {
    const element = scroll.current!;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && event.deltaX === 0) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return zoomAround(timeAt(event), Math.exp(event.deltaY / 200));
      const by = (event.deltaX / element.clientWidth) * (seen[1] - seen[0]);
      see(seen[0] + by, seen[1] + by);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const timeAt = (event: MouseEvent): number => {
    const strips = scroll.current!.querySelector(".strip")!.getBoundingClientRect();
    return seen[0] + Math.max(0, Math.min(1, (event.clientX - strips.left) / strips.width)) * (seen[1] - seen[0]);
  };
  const isOnStrip = (event: PointerEvent) => (event.target as HTMLElement).closest(".strip") !== null;
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0 || !isOnStrip(event)) return;
    drag.current = timeAt(event);
    scroll.current!.setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent) => {
    if (drag.current !== null) {
      const [from, to] = [drag.current, timeAt(event)].sort((a, b) => a - b);
      if (to - from > (seen[1] - seen[0]) / 500) update({ range: [Math.round(from), Math.round(to)] });
      return;
    }
    const row = isOnStrip(event) ? (event.target as HTMLElement).closest<HTMLElement>(".lane") : null;
    const track = row?.dataset.track === undefined ? null : shown[Number(row.dataset.track)];
    if (track) return setTold(trackInWords(track, timeAt(event)));
    const lane = row?.dataset.lane === undefined ? null : rows[Number(row.dataset.lane)];
    setTold(lane ? inWords(lanes, lane, byLane.get(lane.key) ?? [], timeAt(event), seen[1] - seen[0]) : "");
  };
  const onUp = () => {
    drag.current = null;
  };
  const seconds = (ns: number) => Number((ns / 1e9).toFixed(6));
  const setRange = (side: 0 | 1, text: string) => {
    const next: [number, number] = range ? [...range] : [begin, whole];
    next[side] = Math.max(begin, Math.min(whole, Number(text) * 1e9));
    update({ range: next[1] > next[0] ? next : null }, true);
  };
  const present = new Set(markers.map((marker) => marker.kind));

  return (
    <div class="timeline">
      <div class="bar inner">
        <label>from <input type="number" min="0" step="any" value={seconds(range?.[0] ?? begin)} onChange={(event) => setRange(0, event.currentTarget.value)} /> s</label>
        <label>to <input type="number" min="0" step="any" value={seconds(range?.[1] ?? whole)} onChange={(event) => setRange(1, event.currentTarget.value)} /> s</label>
        {range && <button type="button" class="chip" onClick={() => update({ range: null }, true)}>{time(range[1] - range[0])} chosen ×</button>}
        <span class="faint">{lanes.lanes.length > 0 && `${count(lanes.lanes.length)} ${lanes.lanes.length === 1 ? "thread" : "threads"}, ${lanes.title.toLowerCase().replace("cpu", "CPU")} in pieces of ${time(lanes.piece)}; `}drag over a strip to choose a part of the time, W and S or Ctrl+wheel zoom</span>
      </div>
      {tracks.length > 0 && <TrackChoice tracks={tracks} shown={shown} isChosen={state.counters !== null} choose={(counters) => update({ counters }, true)} />}
      <div class="lanes" ref={scroll} tabIndex={0} role="region" aria-label={tracks.length > 0 ? "Counters and threads over time; the tabs Counters and Threads have them as tables" : "Threads over time; the tab Threads has the sums as a table"} onKeyDown={onKeyDown} onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setTold("")}>
        <Axis seen={seen} />
        {shown.map((track, at) => (
          <div class="lane track" key={track.key} data-track={at} style={{ height: `${TRACK}px` }}>
            <span class="track-label" title={`${track.key}, ${extent(track)}`}>
              <span>{track.label}</span>
              <span class="faint">{extent(track)}</span>
            </span>
            <TrackStrip track={track} seen={seen} range={range} dark={dark} />
          </div>
        ))}
        <div style={{ height: `${list.height}px`, position: "relative" }}>
          {list.items.map((item) => {
            const lane = rows[item.index];
            return lane && (
              <div class="lane" key={lane.key} data-lane={item.index} style={{ top: `${item.start - shown.length * TRACK}px`, height: `${ROW}px` }}>
                {lane.key === FOLD ? (
                  <button type="button" class="lane-label fold" aria-expanded={isOpen} title={`Threads that are idle for nearly all of their time: ${isOpen ? "hide" : "show"} each`} onClick={() => setOpen(!isOpen)}>
                    {isOpen ? "▾" : "▸"} {lane.label}
                  </button>
                ) : (
                  <span class="lane-label" title={lane.label}>{idle.has(lane.key) ? `\u2003${lane.label}` : lane.label}</span>
                )}
                <LaneStrip lanes={lanes} lane={lane} markers={byLane.get(lane.key) ?? []} common={byLane.get("") ?? []} seen={seen} range={range} dark={dark} />
              </div>
            );
          })}
        </div>
      </div>
      <div class="told">{told || `${time(seen[0])} to ${time(seen[1])}`}</div>
      <div class="legend">
        {STATES.filter((one) => one.names.some((name) => lanes.kinds.includes(name))).map((one) => <span key={one.label}><span class="mark" style={{ background: ofElement(one) }} />{one.label}</span>)}
        {Object.entries(SHAPES).filter(([kind]) => present.has(kind as Marker["kind"])).map(([kind, { label, shape, colour }]) => <span key={kind}><span style={{ color: colour }}>{shape}</span> {label}</span>)}
      </div>
    </div>
  );
}

/** Key of the line of all idle threads. */
const FOLD = "idle";

/** The lanes as they stand below each other, and the keys of the idle ones. */
function folded(lanes: Lanes, isOpen: boolean): { rows: Lane[]; idle: Set<string> } {
  const idle = lanes.lanes.filter((lane) => isIdle(lanes, lane));
  if (idle.length < 2) return { rows: lanes.lanes, idle: new Set() };
  const keys = new Set(idle.map(({ key }) => key));
  const line = together(idle, FOLD, `${count(idle.length)} idle threads`);
  return { rows: [...lanes.lanes.filter(({ key }) => !keys.has(key)), line, ...(isOpen ? idle : [])], idle: keys };
}

/** Times of what is in sight. */
function Axis({ seen }: { seen: [number, number] }) {
  return (
    <div class="lane axis" aria-hidden="true">
      <span />
      <Ticks seen={seen} most={8} />
    </div>
  );
}

/** Markers by lane; those of no thread under nothing. */
function grouped(markers: Marker[]): Map<string, Marker[]> {
  const all = new Map<string, Marker[]>();
  for (const marker of markers) {
    const key = marker.lane ?? "";
    const mine = all.get(key);
    if (mine) mine.push(marker);
    else all.set(key, [marker]);
  }
  return all;
}

/** What is at a moment, and around it in a part of what is in sight. */
function inWords(lanes: Lanes, lane: Lane, markers: Marker[], at: number, seen: number): string {
  const piece = Math.floor((at - lanes.start) / lanes.piece);
  const kinds = lanes.kinds.map((kind, number) => [kind, lane.amounts[piece * lanes.kinds.length + number] ?? 0] as const);
  const parts = kinds.filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1]).map(([kind, amount]) => `${kind.replaceAll("_", " ")} ${time(amount)}`);
  const near = markers.filter((marker) => Math.abs(marker.time - at) < seen / 300).slice(0, 3).map((marker) => `${time(marker.time)} ${marker.text}`);
  return [`${lane.label} at ${time(at)}`, ...parts, ...near].join(" · ");
}

interface StripProps extends Sight {
  lanes: Lanes;
  lane: Lane;
  markers: Marker[];
  common: Marker[];
}

function LaneStrip({ lanes, lane, markers, common, ...sight }: StripProps) {
  const { seen } = sight;
  const draw = (context: CanvasRenderingContext2D, x: (ns: number) => number, width: number) => {
    const pieceAt = (ns: number) => (ns - lanes.start) / lanes.piece;
    const last = Math.min(lanes.pieces, Math.ceil(pieceAt(seen[1])) + 1);
    for (let piece = Math.max(0, Math.floor(pieceAt(seen[0]))); piece < last; piece++) {
      let y = ROW - 2;
      const begin = lanes.start + piece * lanes.piece;
      const [from, to] = [x(begin), x(begin + lanes.piece)];
      lanes.kinds.forEach((kind, number) => {
        const amount = lane.amounts[piece * lanes.kinds.length + number];
        if (amount <= 0) return;
        const high = Math.min(1, amount / lanes.piece) * (ROW - 4);
        context.fillStyle = stateColour(kind, sight.dark);
        context.fillRect(from, y - high, Math.max(0.7, to - from), high);
        y -= high;
      });
    }
    context.font = "9px sans-serif";
    context.textAlign = "center";
    let before = -10;
    for (const marker of [...common, ...markers]) {
      const { shape, colour } = SHAPES[marker.kind];
      const at = x(marker.time);
      if (at > width || x(marker.time + marker.duration) < 0) continue;
      if (marker.duration > 0) {
        context.fillStyle = `${colour}55`;
        context.fillRect(at, 0, Math.max(1, x(marker.time + marker.duration) - at), ROW);
      }
      // Marks that lie upon one another are one.
      if (at - before < 3 && at >= before) continue;
      before = at;
      context.fillStyle = colour;
      context.fillText(shape, at, 9);
    }
  };
  return <Strip {...sight} high={ROW} draw={draw} of={[lanes, lane, markers, common]} />;
}
