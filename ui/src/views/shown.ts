// What the views of paths share: the tree that is shown, and what can be done with its nodes.

import type { Document, Measure } from "../data/document";
import type { CallTree, Func, Neighbours, Sums } from "../model/tree";
import type { State } from "../state";
import type { Shade } from "../colours";
import type { Look } from "./drawing";

export interface Shown {
  measure: Measure;
  functions: Func[];
  /** What was asked for: a tree of the same question is the one before with more in it. */
  question: string;
  /** The tree after all changes, upside down where that is asked for. */
  tree: CallTree;
  /** The tree after all changes, as it was called. */
  upright: CallTree;
  /** Sums by function over all paths that there are. */
  sums: Sums;
  /** Callers and callees of a function, as the tool has answered. */
  neighboursOf(answer: Document): Neighbours;
  /** Functions that match the search; null where nothing is searched. */
  matching: Uint8Array | null;
  state: State;
  /** The function that is looked at. */
  func: number | null;
  dark: boolean;
  /** Changes what is shown; with `push` as a step that the browser's way back undoes. */
  update(change: Partial<State>, push?: boolean): void;
  /** Looks at a function, or at none. */
  choose(func: number | null): void;
  /** Whether paths that are not in the tree can be asked for. */
  canAsk: boolean;
  /** Asks for more of what lies below a node of `upright`, where somebody can be asked. */
  closer(node: number): void;
  /** A node of `tree` was selected. */
  select(node: number): void;
  /** Opens the menu of a node of `tree`. */
  menu(node: number, x: number, y: number): void;
  /** Opens the menu of a function. */
  menuOf(func: number, x: number, y: number): void;
  /** Goes to the lines of a function's source; whether there may be some. */
  toSource(func: number): boolean;
  /** A key was pressed with a node of `tree` selected; whether it meant anything. */
  key(node: number, event: KeyboardEvent): boolean;
  /** Look of the frames of a flame graph, and words about them, where they are not those of one recording. */
  look?: Look & { told(node: number): string; legend: Shade[] };
  /** Times of everything by state, in the order of their names, whatever states are shown; null where states are not known. */
  times: number[] | null;
  /** A key was pressed with a function selected; whether it meant anything. */
  keyOf(func: number, event: KeyboardEvent): boolean;
}
