// The flame graph: the root on top, of siblings the largest at the left, any depth.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, count, share } from "../data/format";
import { KINDS_OF_CODE } from "../colours";
import { matchedIn } from "../model/search";
import { type CallTree, sameIn } from "../model/tree";
import { draw, FRAME, levelsOf, nodeAt, type Picture } from "./drawing";
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
  const zoom: [number, number] = state.zoom ?? [0, 1];
  const root = shown.look ? "both sides" : state.threads.length === 1 ? "one thread" : state.threads.length > 1 ? `${state.threads.length} threads` : "all threads";
  const picture: Picture = { tree, levels, functions, zoom, top, ...size, matching, selected: Math.min(selected, tree.size - 1), hovered: Math.min(hovered, tree.size - 1), root, dark: shown.dark, look: shown.look };

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
    </>
  );
}

function Legend({ shown }: { shown: Shown }) {
  const { tree, functions, matching } = shown;
  const codes = useMemo(() => new Set(Array.from(tree.func.subarray(1, Math.min(tree.size, 200_000)), (func) => functions[func].code)), [tree]);
  const matched = useMemo(() => (matching ? matchedIn(tree, matching, functions) : null), [tree, matching]);
  const kinds = shown.look?.legend ?? KINDS_OF_CODE.filter((kind) => kind.names.some((name) => codes.has(name)));
  return (
    <div class="legend">
      {kinds.map((kind) => (
        <span key={kind.label}><span class="mark" style={{ background: kind.colour }} />{kind.label}</span>
      ))}
      <span class="faint">{count(tree.size - 1)} paths</span>
      {matched && <span class="faint">{matched.isLeast ? "at least " : ""}{count(matched.nodes.length)} match</span>}
    </div>
  );
}
