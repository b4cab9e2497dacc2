// Names that are written as short as their column asks for.

import { type RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { partsOf, withoutNamespaces } from "../data/names";

/** Widths of what is in a row's cells in pixels, and the font there, as they change with the window. */
export interface Cells {
  widths: number[];
  font: string;
}

/** Follows the cells of a row; none until it is on the screen. `key` says which columns it has. */
export function useCells(row: RefObject<HTMLElement | null>, key: string): Cells | null {
  const [cells, setCells] = useState<Cells | null>(null);
  useLayoutEffect(() => {
    const element = row.current!;
    const measure = () => {
      const widths = [...element.children].map(inside);
      // The shorthand is empty where it can't say everything, as the kind of digits.
      const { fontSize, fontFamily } = getComputedStyle(element);
      const font = `${fontSize} ${fontFamily}`;
      setCells((known) => (known && known.font === font && known.widths.join() === widths.join() ? known : { widths, font }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [key]);
  return cells;
}

function inside(cell: Element): number {
  const style = getComputedStyle(cell);
  return cell.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}

const context = document.createElement("canvas").getContext("2d");

/** The name as long as there is room: whole, without its namespace, without those of what it is made of. */
export function fitted(name: string, room: number, font: string): string {
  if (!context) return name;
  context.font = font;
  const fits = (text: string) => context.measureText(text).width < room;
  const rest = partsOf(name)[1];
  const ways = name.includes("::") ? [name, rest] : [name, rest, withoutNamespaces(name)];
  return ways.find(fits) ?? ways[ways.length - 1];
}
