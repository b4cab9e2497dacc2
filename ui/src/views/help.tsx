// The overlay with keys and mouse.

import { useEffect, useRef } from "preact/hooks";
import { KINDS } from "../model/transforms";

const KEYS: [string, string][] = [
  ["?", "this help"],
  ["/ or Ctrl+F", "search; a second Ctrl+F is the browser's own"],
  ["Enter, Shift+Enter", "in the search field: next and previous function that matches"],
  ["Esc", "leave the search, close what is open, show the whole flame graph"],
  ["1 to 9", "tabs"],
  ["i", "invert: from functions to their callers"],
  ["Backspace, browser's back", "undo the last change"],
  ["arrow keys", "walk through frames and rows; in the tree Right and Left open and close"],
  ["*", "tree: open all below"],
  ["Enter", "flame graph: zoom to the frame; tree: open; functions, also those of the summary and of lines: callers and callees"],
  ["double click", "flame graph: zoom to the frame; tree, functions: source lines, if the function has some; else like Enter"],
  ["W A S D", "flame graph: move up, left, down, right; timeline: W and S zoom, A and D move"],
  ["+ and -, Ctrl+wheel", "flame graph and timeline: zoom; in the flame graph drag or Shift+wheel moves"],
  ["0", "flame graph and timeline: show all"],
  ["drag", "timeline, charts of collections: choose a part of the time, which filters the other tabs; its chip removes it"],
  ["arrow keys, Enter, click", "heat map of requests: walk from cell to cell, choose the requests of one; Esc or their chip undoes it"],
  ["right click, Shift+F10", "menu of a frame or row"],
];

export function Help({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  const row = ([key, text]: [string, string]) => (
    <tr key={key}>
      <td><kbd>{key}</kbd></td>
      <td>{text}</td>
    </tr>
  );
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2 id="help-title">Keys and mouse</h2>
      <table><tbody>{KEYS.map(row)}</tbody></table>
      <h3>With a frame or row selected</h3>
      <table><tbody>{KINDS.map(({ kind, menu, help }) => row([kind === "d" ? "x (d in tables)" : kind, `${menu}: ${help}`]))}</tbody></table>
      <p>Search: words with commas between them, or <code>/a regular expression/</code>.</p>
      <button type="button" onClick={() => dialog.current!.close()}>Close</button>
    </dialog>
  );
}
