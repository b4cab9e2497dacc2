// The timeline: a strip per thread with what it was about, marks for what happened, and a range that can be chosen.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Document, Page } from "../data/document";
import { count, time } from "../data/format";
import { STATES, stateColour } from "../colours";
import { type Lane, type Lanes, lanesOf, type Marker, markersOf } from "../model/lanes";
import type { State } from "../state";
import { useVirtual, ROW } from "./virtual";

/** Marks of a kind, as shapes that are told apart without colour. */
const SHAPES: Record<Marker["kind"], { label: string; shape: string; colour: string }> = {
  exception: { label: "exception", shape: "▼", colour: "#d1480a" },
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
  const lanes = useMemo(() => lanesOf(documents[0], page.recording.processes[0]?.pid ?? 0), [documents]);
  const markers = useMemo(() => markersOf(page), [page]);
  const byLane = useMemo(() => grouped(markers), [markers]);
  const scroll = useRef<HTMLDivElement>(null);
  const list = useVirtual(lanes.lanes.length, scroll);
  const [told, setTold] = useState("");
  const whole = Math.max(page.recording.duration_ns, lanes.pieces * lanes.piece);
  const range = state.range;
  const drag = useRef<number | null>(null);

  const timeAt = (event: PointerEvent): number => {
    const strips = scroll.current!.querySelector(".strip")!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - strips.left) / strips.width)) * whole;
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
      if (to - from > whole / 500) update({ range: [Math.round(from), Math.round(to)] });
      return;
    }
    const row = (event.target as HTMLElement).closest<HTMLElement>(".lane");
    const lane = row && isOnStrip(event) ? lanes.lanes[Number(row.dataset.lane)] : null;
    setTold(lane ? inWords(lanes, lane, byLane.get(lane.key) ?? [], timeAt(event), whole) : "");
  };
  const onUp = () => {
    drag.current = null;
  };
  const seconds = (ns: number) => Number((ns / 1e9).toFixed(6));
  const setRange = (side: 0 | 1, text: string) => {
    const next: [number, number] = range ? [...range] : [0, whole];
    next[side] = Math.max(0, Math.min(whole, Number(text) * 1e9));
    update({ range: next[1] > next[0] ? next : null }, true);
  };
  const present = new Set(markers.map((marker) => marker.kind));

  return (
    <div class="timeline">
      <div class="bar inner">
        <label>from <input type="number" min="0" step="any" value={seconds(range?.[0] ?? 0)} onChange={(event) => setRange(0, event.currentTarget.value)} /> s</label>
        <label>to <input type="number" min="0" step="any" value={seconds(range?.[1] ?? whole)} onChange={(event) => setRange(1, event.currentTarget.value)} /> s</label>
        {range && <button type="button" class="chip" onClick={() => update({ range: null }, true)}>{time(range[1] - range[0])} chosen ×</button>}
        <span class="faint">{count(lanes.lanes.length)} {lanes.lanes.length === 1 ? "thread" : "threads"}, {lanes.title.toLowerCase().replace("cpu", "CPU")} in pieces of {time(lanes.piece)}; drag over a strip to choose a part of the time</span>
      </div>
      <div class="lanes" ref={scroll} tabIndex={0} role="region" aria-label="Threads over time; the tab Threads has the sums as a table" onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onPointerLeave={() => setTold("")}>
        <div style={{ height: `${list.height}px`, position: "relative" }}>
          {list.items.map((item) => {
            const lane = lanes.lanes[item.index];
            return lane && (
              <div class="lane" key={lane.key} data-lane={item.index} style={{ top: `${item.start}px`, height: `${ROW}px` }}>
                <span class="lane-label" title={lane.label}>{lane.label}</span>
                <Strip lanes={lanes} lane={lane} markers={byLane.get(lane.key) ?? []} common={byLane.get("") ?? []} whole={whole} range={range} dark={dark} />
              </div>
            );
          })}
        </div>
      </div>
      <div class="told">{told || `${time(0)} to ${time(whole)}`}</div>
      <div class="legend">
        {STATES.filter((one) => one.names.some((name) => lanes.kinds.includes(name))).map((one) => <span key={one.label}><span class="mark" style={{ background: one.colour }} />{one.label}</span>)}
        {Object.entries(SHAPES).filter(([kind]) => present.has(kind as Marker["kind"])).map(([kind, { label, shape, colour }]) => <span key={kind}><span style={{ color: colour }}>{shape}</span> {label}</span>)}
      </div>
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

function inWords(lanes: Lanes, lane: Lane, markers: Marker[], at: number, whole: number): string {
  const piece = Math.floor(at / lanes.piece);
  const kinds = lanes.kinds.map((kind, number) => [kind, lane.amounts[piece * lanes.kinds.length + number] ?? 0] as const);
  const parts = kinds.filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1]).map(([kind, amount]) => `${kind.replaceAll("_", " ")} ${time(amount)}`);
  const near = markers.filter((marker) => Math.abs(marker.time - at) < whole / 300).slice(0, 3).map((marker) => `${time(marker.time)} ${marker.text}`);
  return [`${lane.label} at ${time(at)}`, ...parts, ...near].join(" · ");
}

interface StripProps {
  lanes: Lanes;
  lane: Lane;
  markers: Marker[];
  common: Marker[];
  whole: number;
  range: [number, number] | null;
  dark: boolean;
}

function Strip({ lanes, lane, markers, common, whole, range, dark }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(canvas.current?.clientWidth ?? 0));
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const ratio = window.devicePixelRatio || 1;
    const element = canvas.current!;
    element.width = Math.max(1, Math.round(width * ratio));
    element.height = Math.round(ROW * ratio);
    const context = element.getContext("2d");
    if (!context || width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const x = (ns: number) => (ns / whole) * width;
    for (let piece = 0; piece < lanes.pieces; piece++) {
      let y = ROW - 2;
      const [from, to] = [x(piece * lanes.piece), x((piece + 1) * lanes.piece)];
      lanes.kinds.forEach((kind, number) => {
        const amount = lane.amounts[piece * lanes.kinds.length + number];
        if (amount <= 0) return;
        const high = Math.min(1, amount / lanes.piece) * (ROW - 4);
        context.fillStyle = stateColour(kind);
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
      if (marker.duration > 0) {
        context.fillStyle = `${colour}55`;
        context.fillRect(at, 0, Math.max(1, x(marker.duration)), ROW);
      }
      // Marks that lie upon one another are one.
      if (at - before < 3 && at >= before) continue;
      before = at;
      context.fillStyle = colour;
      context.fillText(shape, at, 9);
    }
    if (range) {
      context.fillStyle = dark ? "#000000a0" : "#ffffffb0";
      context.fillRect(0, 0, x(range[0]), ROW);
      context.fillRect(x(range[1]), 0, width - x(range[1]), ROW);
    }
  }, [lanes, lane, markers, common, whole, range, width, dark]);
  return <canvas class="strip" ref={canvas} aria-hidden="true" />;
}
