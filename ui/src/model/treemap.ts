// Rectangles in rectangles: as wide as they are high as far as that goes (squarified, after Bruls, Huizing and van Wijk).

export interface Box {
  node: number;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A tree whose nodes have sizes: the children of a node, largest first. */
export interface Sized {
  size(node: number): number;
  children(node: number): number[];
}

/** Room for the name of what has others within. */
export const HEAD = 16;
/** Nothing smaller is drawn. */
const LEAST = 3;
/** Boxes at most. */
const MOST = 6_000;

/** The boxes of nodes and of what lies within them, outer ones first. */
export function treemap(tree: Sized, roots: number[], width: number, height: number): Box[] {
  const boxes: Box[] = [];
  const open: { nodes: number[]; sum: number; depth: number; x: number; y: number; width: number; height: number }[] = [];
  const all = roots.reduce((sum, node) => sum + tree.size(node), 0);
  open.push({ nodes: roots, sum: all, depth: 0, x: 0, y: 0, width, height });
  for (let at = 0; at < open.length && boxes.length < MOST; at++) {
    const { nodes, sum, depth, ...room } = open[at];
    for (const box of rows(tree, nodes, sum, depth, room)) {
      boxes.push(box);
      const inner = { x: box.x + 2, y: box.y + HEAD, width: box.width - 4, height: box.height - HEAD - 2 };
      const children = tree.children(box.node);
      // What is left of the box is the node's own.
      if (children.length > 0 && inner.width > 12 && inner.height > 12) open.push({ nodes: children, sum: tree.size(box.node), depth: depth + 1, ...inner });
    }
  }
  return boxes;
}

interface Room {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Nodes in rows along the shorter side; `sum` is what the whole room stands for. */
function rows(tree: Sized, nodes: number[], sum: number, depth: number, room: Room): Box[] {
  const boxes: Box[] = [];
  let { x, y, width, height } = room;
  const scale = sum > 0 ? (width * height) / sum : 0;
  let at = 0;
  while (at < nodes.length && width > LEAST && height > LEAST) {
    const side = Math.min(width, height);
    let [area, next] = [0, at];
    let worst = Infinity;
    while (next < nodes.length) {
      const more = tree.size(nodes[next]) * scale;
      if (more < LEAST * LEAST) break;
      const [large, small] = [tree.size(nodes[at]) * scale, more];
      const [sums, square] = [area + more, side * side];
      const shape = Math.max((square * large) / (sums * sums), (sums * sums) / (square * small));
      if (shape > worst) break;
      [worst, area, next] = [shape, sums, next + 1];
    }
    if (next === at) break;
    const thick = area / side;
    let along = 0;
    for (; at < next; at++) {
      const long = (tree.size(nodes[at]) * scale) / thick;
      const box = width >= height ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick };
      boxes.push({ node: nodes[at], depth, ...box });
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
  }
  return boxes;
}
