// Lists of which only the rows in sight are made.

import { elementScroll, observeElementOffset, observeElementRect, type VirtualItem, Virtualizer } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

/** Height of a row on the screen. */
export const ROW = 24;

export interface List {
  items: VirtualItem[];
  height: number;
  show(row: number): void;
}

/** The rows in sight of a list within a scrolled element, with so many pixels of something else above them. */
export function useVirtual(count: number, scroll: RefObject<HTMLElement | null>, above = 0): List {
  const [, draw] = useReducer((number: number, _: void) => number + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 8,
    scrollMargin: above,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw(),
  };
  const [list] = useState(() => new Virtualizer<HTMLElement, Element>(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), []);
  useLayoutEffect(() => list._willUpdate());
  return {
    items: list.getVirtualItems(),
    height: list.getTotalSize(),
    show: (row) => list.scrollToIndex(row),
  };
}
