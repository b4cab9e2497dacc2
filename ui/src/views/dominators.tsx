// What holds what alone: as a tree, and as boxes in boxes as large as what would be free without them.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Document, Section } from "../data/document";
import { bytes, count, oneLine, share } from "../data/format";
import { withoutNamespaces } from "../data/names";
import { matcher } from "../model/search";
import { type Box, HEAD, type Sized, treemap } from "../model/treemap";
import { TreeTable } from "./treetable";

/** Colours by depth, light enough for black text. */
const COLOURS = ["#7cc4f0", "#f0c070", "#8fd4bd", "#dba3c6", "#efe58a", "#c9c9d4"];
/** Nodes on the way to the largest are opened as long as they have this part of the whole. */
const HOT = 0.3;

/** The nodes of a document, in preorder. */
class Dominated implements Sized {
  readonly rows: number;
  readonly parent: Int32Array;
  readonly end: Int32Array;
  readonly depth: number[];
  readonly whole: number;
  readonly roots: number[] = [];
  private readonly inner: number[][];

  constructor(readonly section: Section) {
    this.rows = section.rows;
    this.depth = section.packed.depths;
    this.parent = new Int32Array(this.rows).fill(-1);
    this.end = new Int32Array(this.rows);
    this.inner = Array.from({ length: this.rows }, () => []);
    const path: number[] = [];
    for (let node = 0; node < this.rows; node++) {
      path.length = this.depth[node];
      if (path.length > 0) {
        this.parent[node] = path[path.length - 1];
        this.inner[this.parent[node]].push(node);
      } else this.roots.push(node);
      path.push(node);
    }
    for (let node = this.rows - 1; node >= 0; node--) {
      this.end[node] = Math.max(this.end[node], node + 1);
      if (this.parent[node] >= 0) this.end[this.parent[node]] = Math.max(this.end[this.parent[node]], this.end[node]);
    }
    for (const all of [this.roots, ...this.inner]) all.sort((a, b) => this.size(b) - this.size(a));
    this.whole = this.roots.reduce((sum, node) => sum + this.size(node), 0);
  }

  number(key: string, node: number): number {
    return this.section.column(key)?.number(node) ?? 0;
  }

  size(node: number): number {
    return this.number("retained_bytes", node);
  }

  children(node: number): number[] {
    return this.inner[node];
  }

  name(node: number): string {
    return oneLine(String(this.section.column("type")?.value(node) ?? ""));
  }
}

export function Dominators({ document, search, dark }: { document: Document; search: string; dark: boolean }) {
  const tree = useMemo(() => new Dominated(document.main!), [document]);
  const [selected, setSelected] = useState(-1);
  const is = useMemo(() => matcher(search), [search]);
  useEffect(() => setSelected(-1), [tree]);
  if (tree.rows === 0) return <p class="nothing">{document.main!.packed.nothing}</p>;
  return (
    <div class="dominators">
      <Boxes tree={tree} selected={selected} onSelect={setSelected} is={is} dark={dark} />
      <Nodes tree={tree} selected={selected} onSelect={setSelected} is={is} />
      {document.main!.packed.note && <p class="note">{oneLine(document.main!.packed.note)}</p>}
    </div>
  );
}

interface Props {
  tree: Dominated;
  selected: number;
  onSelect(node: number): void;
  is: ((text: string) => boolean) | null;
}

function Boxes({ tree, selected, onSelect, is, dark }: Props & { dark: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(-1);
  const [hovered, setHovered] = useState(-1);
  useEffect(() => setTop(-1), [tree]);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  const boxes = useMemo(() => treemap(tree, top >= 0 ? [top] : tree.roots, size.width, size.height), [tree, top, size]);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const ratio = devicePixelRatio || 1;
    element.width = Math.max(1, Math.round(size.width * ratio));
    element.height = Math.max(1, Math.round(size.height * ratio));
    const context = element.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "12px ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const box of boxes) drawn(context, box, tree, { selected, hovered, is, dark });
    element.dataset.drawn = String(boxes.length);
  }, [boxes, selected, hovered, is, dark]);
  const at = (event: MouseEvent): number => {
    const place = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top];
    return [...boxes].reverse().find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height)?.node ?? -1;
  };
  const told = hovered >= 0 ? hovered : selected;
  return (
    <div class="boxes">
      {/* The tree below has the same for keyboards and screen readers. */}
      <canvas
        ref={canvas}
        aria-hidden="true"
        onPointerMove={(event) => setHovered(at(event))}
        onPointerLeave={() => setHovered(-1)}
        onClick={(event) => onSelect(at(event))}
        onDblClick={(event) => setTop(at(event))}
      />
      <div class="told">
        {told >= 0 ? (
          <>
            <b>{tree.name(told)}</b> <span>retains {bytes(tree.size(told))} ({share(tree.size(told) / (tree.whole || 1))})</span> <span>{count(tree.number("objects", told))} objects, {bytes(tree.number("bytes", told))} their own</span>
          </>
        ) : (
          <span class="faint">As large as what its end would free; a double click zooms in</span>
        )}
        {top >= 0 && <button type="button" class="chip" onClick={() => setTop(tree.parent[top])}>{tree.name(top)} ×</button>}
      </div>
    </div>
  );
}

interface Look {
  selected: number;
  hovered: number;
  is: ((text: string) => boolean) | null;
  dark: boolean;
}

function drawn(context: CanvasRenderingContext2D, box: Box, tree: Dominated, { selected, hovered, is, dark }: Look): void {
  const { x, y, width, height, node, depth } = box;
  const name = tree.name(node);
  context.globalAlpha = is && !is(name) ? 0.3 : 1;
  context.fillStyle = COLOURS[depth % COLOURS.length];
  context.fillRect(x, y, width, height);
  context.strokeStyle = node === selected || node === hovered ? (dark ? "#ffffff" : "#000000") : "#00000055";
  context.lineWidth = node === selected ? 2 : 1;
  context.strokeRect(x + 0.5, y + 0.5, Math.max(0, width - 1), Math.max(0, height - 1));
  if (width > 40 && height >= HEAD) {
    context.save();
    context.beginPath();
    context.rect(x + 2, y, width - 4, HEAD);
    context.clip();
    context.fillStyle = "#101010";
    context.fillText(`${withoutNamespaces(name)} ${bytes(tree.size(node))}`, x + 4, y + HEAD / 2 + 1);
    context.restore();
  }
  context.globalAlpha = 1;
}

function Nodes({ tree, selected, onSelect, is }: Props) {
  const [open, setOpen] = useState<Set<number>>(() => hottest(tree));
  useEffect(() => setOpen(hottest(tree)), [tree]);
  // What is selected among the boxes is opened here.
  useEffect(() => {
    if (selected < 0 || selected >= tree.rows) return;
    const above: number[] = [];
    for (let node = tree.parent[selected]; node >= 0; node = tree.parent[node]) above.push(node);
    if (above.some((node) => !open.has(node))) setOpen(new Set([...open, ...above]));
  }, [selected]);
  const nodes = useMemo(() => visible(tree, open), [tree, open]);
  const toggle = (node: number, to: boolean) => {
    const next = new Set(open);
    if (to) next.add(node);
    else next.delete(node);
    setOpen(next);
  };
  const row = (node: number) => {
    const name = tree.name(node);
    return {
      amount: bytes(tree.size(node)),
      part: tree.size(node) / (tree.whole || 1),
      more: count(tree.number("objects", node)),
      level: tree.depth[node],
      colour: COLOURS[tree.depth[node] % COLOURS.length],
      name,
      title: name,
      isPale: is !== null && !is(name),
    };
  };
  return (
    <TreeTable
      label="Dominators"
      headings={["retained", "share", "objects", "type"]}
      id="held"
      nodes={nodes}
      at={selected}
      row={row}
      parent={(node) => tree.parent[node]}
      hasChildren={(node) => node >= 0 && tree.end[node] > node + 1}
      isOpen={(node) => open.has(node)}
      toggle={toggle}
      select={onSelect}
    />
  );
}

/** The nodes whose parents are all open, in order. */
function visible(tree: Dominated, open: Set<number>): number[] {
  const nodes: number[] = [];
  let node = 0;
  while (node < tree.rows) {
    nodes.push(node);
    node = open.has(node) ? node + 1 : tree.end[node];
  }
  return nodes;
}

/** The path of the largest nodes. */
function hottest(tree: Dominated): Set<number> {
  const open = new Set<number>();
  let node = tree.roots[0];
  while (node !== undefined && tree.size(node) > HOT * tree.whole && open.size < 30) {
    open.add(node);
    node = tree.children(node)[0];
  }
  return open;
}
