// The flame graph: the root on top, of siblings the largest at the left, any depth.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, count, share } from "../data/format";
import { AWAITED, codeColour, inTheme, KINDS_OF_CODE, labelOf, type Shade, STATES_OF_TIME } from "../colours";
import { matchedIn } from "../model/search";
import { partsOf, STATE_NAMES } from "../model/states";
import { type CallTree, type Func, sameIn } from "../model/tree";
import { draw, FRAME, levelsOf, type Look, nodeAt, type Picture } from "./drawing";
import { Mark } from "./mark";
import type { Shown } from "./shown";

/** The narrowest part that can be shown. */
const LEAST_ZOOM = 1e-9;

export function Flame({ shown }: { shown: Shown }) {
  const { tree, state, update, functions, matching } = shown;
  const scroll = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [selected, setSelected] = useState(0);
  const [hovered, setHovered] = useState(-1);
  const levels = useMemo(() => levelsOf(tree), [tree]);
  const look = useMemo(() => shown.look ?? (isByState(shown) ? stateLook(tree, functions, shown.dark) : shown.measure.name === "awaited" ? awaitedLook(tree, functions) : undefined), [shown.look, tree, functions, isByState(shown), shown.measure.name, shown.dark]);
  const zoom: [number, number] = state.zoom ?? [0, 1];
  const root = shown.look ? "both sides" : state.threads.length === 1 ? "one thread" : state.threads.length > 1 ? `${state.threads.length} threads` : "all threads";
  const picture: Picture = { tree, levels, functions, zoom, top, ...size, matching, selected: Math.min(selected, tree.size - 1), hovered: Math.min(hovered, tree.size - 1), root, dark: shown.dark, look };

  const before = useRef({ tree, question: shown.question });
  useEffect(() => {
    const { tree: older, question } = before.current;
    before.current = { tree, question: shown.question };
    if (older === tree) return;
    setHovered(-1);
    // What is selected stays so where more of the tree has come.
    const same = question === shown.question ? sameIn(older, tree) : null;
    setSelected((node) => Math.max(0, same?.[node] ?? 0));
  }, [tree]);
  useLayoutEffect(() => {
    const element = scroll.current!;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.max(1, Math.round(size.width * ratio));
    element.height = Math.max(1, Math.round(size.height * ratio));
  }, [size.width, size.height]);
  useLayoutEffect(() => {
    const context = canvas.current!.getContext("2d");
    if (context && size.width > 0) canvas.current!.dataset.drawn = String(draw(context, picture));
  });
  useEffect(() => {
    const element = scroll.current!;
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const zoomTo = (from: number, to: number, push = false) => {
    const wide = Math.min(1, Math.max(LEAST_ZOOM, to - from));
    const start = Math.max(0, Math.min(1 - wide, from));
    update({ zoom: wide >= 1 ? null : [start, start + wide] }, push);
  };
  const zoomAround = (center: number, factor: number) => {
    const wide = zoom[1] - zoom[0];
    zoomTo(center - (center - zoom[0]) * factor, center - (center - zoom[0]) * factor + wide * factor);
  };
  const zoomToNode = (node: number) => {
    const whole = tree.total[0] || 1;
    zoomTo(tree.start[node] / whole, (tree.start[node] + tree.total[node]) / whole, true);
  };
  const select = (node: number) => {
    setSelected(node);
    shown.select(node);
    const [y, element] = [tree.depth[node] * FRAME, scroll.current!];
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + FRAME * 2 > element.scrollTop + element.clientHeight) element.scrollTop = y + FRAME * 2 - element.clientHeight;
  };
  const point = (event: MouseEvent): [number, number] => {
    const place = canvas.current!.getBoundingClientRect();
    return [event.clientX - place.left, event.clientY - place.top];
  };
  function onWheel(event: WheelEvent) {
    const [x] = point(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoomAround(zoom[0] + (x / size.width) * (zoom[1] - zoom[0]), Math.exp(event.deltaY / 200));
    } else if (event.deltaX !== 0 || event.shiftKey) {
      event.preventDefault();
      const by = ((event.deltaX || event.deltaY) / size.width) * (zoom[1] - zoom[0]);
      zoomTo(zoom[0] + by, zoom[1] + by);
    }
  }
  const drag = useRef<{ x: number; y: number; top: number; zoom: [number, number]; moved: boolean } | null>(null);
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    drag.current = { x: event.clientX, y: event.clientY, top: scroll.current!.scrollTop, zoom, moved: false };
  };
  const onPointerMove = (event: PointerEvent) => {
    const from = drag.current;
    if (from && event.buttons & 1) {
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      from.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
      if (from.moved) {
        const by = (-dx / size.width) * (from.zoom[1] - from.zoom[0]);
        zoomTo(from.zoom[0] + by, from.zoom[1] + by);
        scroll.current!.scrollTop = from.top - dy;
      }
      return;
    }
    setHovered(nodeAt(picture, ...point(event)));
  };
  const onClick = (event: MouseEvent) => {
    if (drag.current?.moved) return;
    const node = nodeAt(picture, ...point(event));
    if (node >= 0) select(node);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const wide = zoom[1] - zoom[0];
    const middle = (zoom[0] + zoom[1]) / 2;
    const pan = (by: number) => zoomTo(zoom[0] + by * wide, zoom[1] + by * wide);
    const actions: Record<string, () => void> = {
      KeyA: () => pan(-0.2),
      KeyD: () => pan(0.2),
      KeyW: () => scroll.current!.scrollBy(0, -FRAME * 4),
      KeyS: () => scroll.current!.scrollBy(0, FRAME * 4),
      ArrowDown: () => selectNear(tree, selected, "down", select),
      ArrowUp: () => selectNear(tree, selected, "up", select),
      ArrowLeft: () => selectNear(tree, selected, "left", select),
      ArrowRight: () => selectNear(tree, selected, "right", select),
      Enter: () => zoomToNode(selected),
      NumpadEnter: () => zoomToNode(selected),
      Digit0: () => zoomTo(0, 1, true),
      Numpad0: () => zoomTo(0, 1, true),
      Escape: () => zoomTo(0, 1, true),
    };
    const byKey: Record<string, () => void> = { "+": () => zoomAround(middle, 0.7), "=": () => zoomAround(middle, 0.7), "-": () => zoomAround(middle, 1 / 0.7) };
    const action = byKey[event.key] ?? actions[event.code];
    if (action) action();
    else if (!shown.key(selected, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const told = picture.hovered >= 0 ? picture.hovered : picture.selected;
  return (
    <div class="flame">
      <div
        class="flame-scroll"
        ref={scroll}
        tabIndex={0}
        role="application"
        aria-label="Flame graph. Arrow keys walk from frame to frame, Enter zooms in, 0 shows all; the call tree has the same as a table."
        aria-describedby="frame-told"
        onScroll={(event) => setTop((event.currentTarget as HTMLElement).scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div class="flame-space" style={{ height: `${(tree.maxDepth + 1) * FRAME}px` }}>
          <canvas
            ref={canvas}
            style={{ width: `${size.width}px`, height: `${size.height}px` }}
            onPointerDown={onPointerDown}
            onPointerMove={onPointerMove}
            onPointerLeave={() => setHovered(-1)}
            onClick={onClick}
            onDblClick={(event) => {
              const node = nodeAt(picture, ...point(event));
              if (node >= 0) zoomToNode(node);
            }}
            onContextMenu={(event) => {
              event.preventDefault();
              const node = nodeAt(picture, ...point(event));
              if (node <= 0) return;
              select(node);
              shown.menu(node, event.clientX, event.clientY);
            }}
          />
        </div>
      </div>
      <div class="told" id="frame-told">
        <Told shown={shown} node={told} root={root} />
      </div>
      <p class="unseen" aria-live="polite">{picture.selected > 0 ? `${functions[tree.func[picture.selected]].label}, ${share(tree.total[picture.selected] / (tree.total[0] || 1))}` : ""}</p>
      <Legend shown={shown} />
    </div>
  );
}

/** Selects a neighbour of a node. */
function selectNear(tree: CallTree, node: number, to: "up" | "down" | "left" | "right", select: (node: number) => void): void {
  const parent = tree.parent[node];
  const child = node + 1 < tree.end[node] ? node + 1 : -1;
  if (to === "up" && parent >= 0) select(parent);
  if (to === "down" && child >= 0) select(child);
  if (to === "right" && parent >= 0 && tree.end[node] < tree.end[parent]) select(tree.end[node]);
  if (to === "left" && parent >= 0) {
    let [before, at] = [-1, parent + 1];
    while (at < node) [before, at] = [at, tree.end[at]];
    if (before > 0) select(before);
  }
}

/** What is known of a node, in a line. */
function Told({ shown, node, root }: { shown: Shown; node: number; root: string }) {
  const { tree, functions, measure, state } = shown;
  const whole = tree.total[0] || 1;
  const parent = tree.parent[node];
  const of = (value: number) => amount(value, measure.unit);
  const func = node > 0 ? functions[tree.func[node]] : null;
  return (
    <>
      <b title={func?.signature}>{func ? func.label : root}</b> {func && <span class="faint">[{func.module}]</span>}
      <span>{of(tree.total[node])} ({share(tree.total[node] / whole)} of all{parent > 0 ? `, ${share(tree.total[node] / (tree.total[parent] || 1))} of its ${state.invert ? "callee" : "caller"}` : ""})</span>
      {!state.invert && <span>self {of(tree.own[node])}</span>}
      {node > 0 && shown.look && <span>{shown.look.told(node)}</span>}
      {isByState(shown) && node > 0 && <span class="split">{splitOf(tree, node)}</span>}
    </>
  );
}

function Legend({ shown }: { shown: Shown }) {
  const { tree, functions, matching } = shown;
  const codes = useMemo(() => new Set(Array.from(tree.func.subarray(1, Math.min(tree.size, 200_000)), (func) => functions[func].code)), [tree]);
  const matched = useMemo(() => (matching ? matchedIn(tree, matching, functions) : null), [tree, matching]);
  const ofCode: Shade[] = KINDS_OF_CODE.filter((kind) => kind.names.some((name) => codes.has(name)));
  const ofAwaited = shown.measure.name === "awaited" ? [AWAITED, ...ofCode.filter((kind) => kind.label === labelOf("cut"))] : null;
  const kinds = shown.look?.legend ?? ofAwaited ?? ofCode;
  return (
    <div class="legend">
      {isByState(shown) ? <States shown={shown} /> : kinds.map((kind) => <span key={kind.label}><Mark shade={kind} />{kind.label}</span>)}
      {(isByState(shown) || ofAwaited) && codes.has("own") && <span><span class="mark own" />own code</span>}
      {shown.times && (
        <label class="check">
          <input type="checkbox" checked={!shown.state.byCode} onChange={() => shown.update({ byCode: !shown.state.byCode }, true)} /> colours by state
        </label>
      )}
      <span class="faint">{count(tree.size - 1)} paths</span>
      {matched && <span class="faint">{matched.isLeast ? "at least " : ""}{count(matched.nodes.length)} match</span>}
    </div>
  );
}

/** Whether frames are coloured by what threads did or waited for. */
const isByState = (shown: Shown): boolean => shown.times !== null && !shown.state.byCode;

/** The states with their times: a click on one leaves its time alone, a second one takes that back. */
function States({ shown }: { shown: Shown }) {
  const { measure, state, update } = shown;
  const times = shown.times!;
  const whole = times.reduce((sum, ns) => sum + ns, 0) || 1;
  const choose = (name: string, adds: boolean) => {
    const others = state.states.filter((one) => one !== name);
    const is = state.states.includes(name);
    const next = adds ? (is ? others : [...others, name]) : is && others.length === 0 ? [] : [name];
    update({ states: next, zoom: null }, true);
  };
  return (
    <span class="states" role="group" aria-label="States: choose whose time is shown">
      {STATE_NAMES.map((name, place) => ({ name, ns: times[place] })).filter(({ name, ns }) => ns > 0 || state.states.includes(name)).map(({ name, ns }) => (
        <button
          type="button"
          key={name}
          aria-pressed={state.states.includes(name)}
          class={state.states.length > 0 && !state.states.includes(name) ? "left-out" : ""}
          title={`${ABOUT[name] ?? STATES_OF_TIME[name].label}. Click: only this time, or all again; Ctrl+click: add it to others`}
          onClick={(event) => choose(name, event.ctrlKey || event.metaKey || event.shiftKey)}
        >
          <Mark shade={STATES_OF_TIME[name]} />
          {STATES_OF_TIME[name].label} <b>{amount(ns, measure.unit)}</b> <span class="faint">{share(ns / whole)}</span>
        </button>
      ))}
    </span>
  );
}

/** More about states than their names say. */
const ABOUT: Record<string, string> = {
  ready: "Able to run, and waiting for a processor",
  task: "Blocked on a task instead of awaiting it (sync over async)",
  waiting: "Waiting for events, pulses, semaphores, the ends of threads and processes",
  idle: "Threads that exist to wait, such as those of timers and loggers: they spend nearly all of their life in one wait while others work",
  unknown: "Nobody knows",
};

/** The states of a node in words, the largest first. */
function splitOf(tree: CallTree, node: number): string {
  const parts = partsOf(tree, node).sort((a, b) => b.ns - a.ns);
  return parts.map(({ state, ns }) => `${STATES_OF_TIME[STATE_NAMES[state]].label} ${share(ns / (tree.total[node] || 1))}`).join(" · ");
}

/** Frames by state: each has parts as wide as the times of its states. Own code has an edge. */
function stateLook(tree: CallTree, functions: Func[], dark: boolean): Look {
  const parts = (node: number) => partsOf(tree, node).map(({ state, ns }) => ({ part: ns / (tree.total[node] || 1), shade: STATES_OF_TIME[STATE_NAMES[state]] }));
  return {
    parts,
    colour: (node) => inTheme(parts(node).reduce((most, one) => (one.part > most.part ? one : most), { part: 0, shade: STATES_OF_TIME.unknown }).shade, dark),
    isMarked: (node) => functions[tree.func[node]]?.code === "own",
  };
}

const awaitedLook = (tree: CallTree, functions: Func[]): Look => ({
  colour: (node) => codeColour("awaited", functions[tree.func[node]].code),
  isMarked: (node) => functions[tree.func[node]]?.code === "own",
});
