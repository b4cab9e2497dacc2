// Drawing of frames: those in sight, and of those only what is wider than a fraction of a pixel.

import { colourOf, inTheme, type Shade } from "../colours";
import { shorterNames } from "../data/names";
import type { CallTree, Func } from "../model/tree";

/** Height of a frame on the screen. */
export const FRAME = 20;
/** Frames that are narrower are not drawn. */
const LEAST = 0.4;

/** The nodes of each depth, in the order of their places. */
export interface Levels {
  first: Int32Array;
  nodes: Int32Array;
}

export function levelsOf(tree: CallTree): Levels {
  const first = new Int32Array(tree.maxDepth + 2);
  for (let node = 0; node < tree.size; node++) first[tree.depth[node] + 1]++;
  for (let depth = 0; depth <= tree.maxDepth; depth++) first[depth + 1] += first[depth];
  const next = first.slice();
  const nodes = new Int32Array(tree.size);
  for (let node = 0; node < tree.size; node++) nodes[next[tree.depth[node]]++] = node;
  return { first, nodes };
}

/** Look of frames whose colours are not those of kinds of code. */
export interface Look {
  colour(node: number): string;
  label?(node: number): string;
  /** Parts of the frame with colours of their own, from left to right; they add up to 1. */
  parts?(node: number): { part: number; shade: Shade }[];
  /** Whether a frame has a thick edge. */
  isMarked(node: number): boolean;
}

/** What is drawn, and where. */
export interface Picture {
  tree: CallTree;
  levels: Levels;
  functions: Func[];
  /** Shares of the whole at the left and right edge. */
  zoom: [number, number];
  /** Pixels that are scrolled away above. */
  top: number;
  width: number;
  height: number;
  matching: Uint8Array | null;
  selected: number;
  hovered: number;
  root: string;
  dark: boolean;
  look?: Look;
}

/** The first of a level's nodes that ends behind a place. */
function firstBehind(picture: Picture, depth: number, place: number): number {
  const { levels, tree } = picture;
  let [low, high] = [levels.first[depth], levels.first[depth + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = levels.nodes[middle];
    if (tree.start[node] + tree.total[node] <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The node at a point of the screen, -1 where there is none. */
export function nodeAt(picture: Picture, x: number, y: number): number {
  const { tree, zoom, width, levels } = picture;
  const depth = Math.floor((y + picture.top) / FRAME);
  if (depth < 0 || depth > tree.maxDepth) return -1;
  const place = (zoom[0] + (x / width) * (zoom[1] - zoom[0])) * tree.total[0];
  const at = firstBehind(picture, depth, place);
  const node = at < levels.first[depth + 1] ? levels.nodes[at] : -1;
  return node >= 0 && tree.start[node] <= place ? node : -1;
}

const widths = new Map<string, number>();

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 50_000) widths.clear();
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

/** The name as long as there is room, at last its beginning. */
function fitting(context: CanvasRenderingContext2D, label: string, room: number): string {
  if (room < 14) return "";
  const ways = shorterNames(label.length > 400 ? `${label.slice(0, 400)}…` : label);
  for (const text of ways) if (widthOf(context, text) <= room) return text;
  const last = ways[ways.length - 1];
  const letters = Math.floor(last.length * (room / widthOf(context, last))) - 1;
  return letters >= 2 ? `${last.slice(0, letters)}…` : "";
}

/** Draws the frames in sight; the number of frames that were drawn. */
export function draw(context: CanvasRenderingContext2D, picture: Picture): number {
  const { tree, levels, width, height, top, zoom } = picture;
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px ui-sans-serif, system-ui, sans-serif";
  context.textBaseline = "middle";
  const whole = tree.total[0] || 1;
  const scale = width / ((zoom[1] - zoom[0]) * whole);
  const left = zoom[0] * whole;
  const lastDepth = Math.min(tree.maxDepth, Math.floor((top + height) / FRAME));
  let drawn = 0;
  for (let depth = Math.max(0, Math.floor(top / FRAME)); depth <= lastDepth; depth++) {
    let at = firstBehind(picture, depth, left);
    const end = levels.first[depth + 1];
    while (at < end) {
      const node = levels.nodes[at];
      const x = (tree.start[node] - left) * scale;
      if (x > width) break;
      const wide = tree.total[node] * scale;
      if (wide < LEAST) {
        // Whatever else lies on this pixel is as small.
        at = Math.max(at + 1, firstBehind(picture, depth, tree.start[node] + LEAST / scale));
        continue;
      }
      const [from, to] = [Math.max(0, x), Math.min(width, x + wide)];
      frame(context, picture, node, from, depth * FRAME - top, to - from, [(from - x) / wide, (to - x) / wide]);
      drawn++;
      at++;
    }
  }
  return drawn;
}

/** Frames that are narrower have the colour of their largest part. */
const LEAST_PARTED = 3;
/** Pixels from stripe to stripe. */
const STRIPE = 6;

/** Where the parts of a frame lie that are in sight. */
function placed(parts: { part: number; shade: Shade }[], x: number, wide: number, visible: [number, number]): { left: number; right: number; shade: Shade }[] {
  const place = (share: number) => x + (Math.min(visible[1], Math.max(visible[0], share)) - visible[0]) * (wide / (visible[1] - visible[0]));
  let from = 0;
  const all = parts.map(({ part, shade }) => {
    const [left, right] = [place(from), place(from + part)];
    from += part;
    return { left, right, shade };
  });
  return all.filter(({ left, right }) => right > left);
}

/** Fills a frame part by part; `visible` is the part of the frame that is in sight. */
function parted(context: CanvasRenderingContext2D, parts: { part: number; shade: Shade }[], x: number, y: number, wide: number, visible: [number, number], dark: boolean): void {
  for (const { left, right, shade } of placed(parts, x, wide, visible)) {
    context.fillStyle = inTheme(shade, dark);
    context.fillRect(left, y, right - left, FRAME - 1);
    if (shade.striped && right - left > 2) stripes(context, left, y, right - left);
  }
}

function stripes(context: CanvasRenderingContext2D, x: number, y: number, wide: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, FRAME - 1);
  context.clip();
  context.strokeStyle = "#ffffff70";
  context.lineWidth = 2;
  context.beginPath();
  // Stripes of neighbours go on in one another.
  for (let at = Math.floor((x - FRAME) / STRIPE) * STRIPE; at < x + wide; at += STRIPE) {
    context.moveTo(at, y + FRAME);
    context.lineTo(at + FRAME, y);
  }
  context.stroke();
  context.restore();
}

function frame(context: CanvasRenderingContext2D, picture: Picture, node: number, x: number, y: number, wide: number, visible: [number, number]) {
  const { tree, functions, matching, selected, hovered, dark, look } = picture;
  const func = tree.func[node];
  const isRoot = node === 0;
  const isPale = matching !== null && !isRoot && !matching[func];
  const gap = wide > 3 ? 1 : 0;
  context.globalAlpha = isPale ? 0.25 : 1;
  context.fillStyle = isRoot ? (dark ? "#3a3f47" : "#dfe3e8") : look ? look.colour(node) : colourOf(functions[func].code);
  const parts = wide > LEAST_PARTED ? (look?.parts?.(node) ?? []) : [];
  if ((parts.length > 0 && isRoot) || parts.length > 1 || parts[0]?.shade.striped) parted(context, parts, x, y, wide - gap, visible, dark);
  else context.fillRect(x, y, wide - gap, FRAME - 1);
  if (!isRoot && wide > 6 && look?.isMarked(node)) {
    context.fillStyle = "#101010";
    context.fillRect(x + 1, y, 3, FRAME - 1);
  }
  context.globalAlpha = 1;
  const isSame = selected > 0 && !isRoot && tree.func[selected] === func;
  if (!isRoot && (node === selected || node === hovered || isSame)) {
    context.strokeStyle = node === selected || isSame ? (dark ? "#ffffff" : "#000000") : dark ? "#cccccc" : "#444444";
    context.lineWidth = node === selected ? 2 : 1;
    if (wide > 2) context.strokeRect(x + 1, y + 1, Math.max(1, wide - gap - 2), FRAME - 3);
  }
  const text = fitting(context, isRoot ? picture.root : (look?.label?.(node) ?? functions[func].label), wide - gap - 8);
  if (text === "") return;
  context.fillStyle = ((isRoot && parts.length === 0) || isPale) && dark ? "#e8e8e8" : "#101010";
  context.fillText(text, x + 5, y + FRAME / 2);
  if (!dark || isPale) return;
  // On dark parts the name is light.
  for (const { left, right } of placed(parts, x, wide - gap, visible).filter(({ shade }) => shade.dark)) {
    context.save();
    context.beginPath();
    context.rect(left, y, right - left, FRAME);
    context.clip();
    context.fillStyle = "#e8e8e8";
    context.fillText(text, x + 5, y + FRAME / 2);
    context.restore();
  }
}
