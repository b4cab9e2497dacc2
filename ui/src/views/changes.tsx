// The flame graph of a comparison: red is more, blue is less, new and gone paths have a thick edge.

import { useMemo } from "preact/hooks";
import type { Document } from "../data/document";
import { amount, share } from "../data/format";
import { type Change, changedTree } from "../model/changes";
import type { Functions } from "../model/functions";
import { matching as matchingOf } from "../model/search";
import { sumsOf } from "../model/tree";
import type { State } from "../state";
import { Flame } from "./flame";
import type { Shown } from "./shown";

/** Colours of growth, light enough for black text: less than a tenth, less than a half, more; then what is new or gone. */
const MORE = ["#f5c4bb", "#f0988a", "#ea6d5c"];
const LESS = ["#c2d4f2", "#93b4ea", "#6a97e2"];
const SAME = "#d6d6d6";

interface Props {
  document: Document;
  functions: Functions;
  state: State;
  dark: boolean;
  update(change: Partial<State>, push?: boolean): void;
}

export function Changes({ document, functions, state, dark, update }: Props) {
  const changes = useMemo(() => changedTree(document.main!, functions), [document, functions]);
  const known = functions.list.length;
  const matching = useMemo(() => matchingOf(functions.list, state.search), [known, state.search]);
  const sums = useMemo(() => changes && sumsOf(changes.tree, functions.list), [changes, known]);
  if (!changes || !sums || changes.tree.size < 2) return <p class="nothing">{document.main!.packed.nothing || "No path differs."}</p>;
  const { tree, measure, change } = changes;
  const of = (value: number) => amount(value, measure.unit);
  const nothing = () => {};
  const shown: Shown = {
    question: document.key || document.view, times: null,
    measure, functions: functions.list, tree, upright: tree, sums, matching, state: { ...state, invert: false }, func: null, dark, update,
    neighboursOf: () => ({ callers: new Map(), callees: new Map() }), choose: nothing, select: nothing, closer: nothing, canAsk: false, menu: nothing, menuOf: nothing,
    key: () => false, keyOf: () => false, toSource: () => false,
    look: {
      colour: (node) => colourOf(change(node)),
      label: (node) => `${functions.list[tree.func[node]].label}${words(change(node))}`,
      isMarked: (node) => ["new", "gone"].includes(change(node).verdict),
      told: (node) => {
        const { before, after } = change(node);
        return `${of(before)} before, ${of(after)} after${words(change(node))}`;
      },
      legend: [
        { label: "more", colour: MORE[1] },
        { label: "new (thick edge)", colour: MORE[2] },
        { label: "less", colour: LESS[1] },
        { label: "gone (thick edge)", colour: LESS[2] },
        { label: "as it was, or by chance", colour: SAME },
      ],
    },
  };
  return <Flame shown={shown} />;
}

function colourOf({ verdict, growth }: Change): string {
  if (verdict === "new") return MORE[2];
  if (verdict === "gone") return LESS[2];
  if (verdict !== "more" && verdict !== "less") return SAME;
  const steps = verdict === "more" ? MORE : LESS;
  const size = Math.abs(growth ?? 1);
  return steps[size < 0.1 ? 0 : size < 0.5 ? 1 : 2];
}

function words({ verdict, growth }: Change): string {
  if (verdict === "new" || verdict === "gone") return ` (${verdict})`;
  if ((verdict !== "more" && verdict !== "less") || growth === null) return "";
  return ` (${growth < 0 ? "-" : "+"}${share(Math.abs(growth))})`;
}
