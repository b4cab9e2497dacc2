// Search: words, several with commas between them, or a regular expression between slashes.

import { CUT, isCut } from "./cut";
import type { CallTree, Func } from "./tree";

/** Whether a text matches what is searched for; null where nothing is. */
export function matcher(query: string): ((text: string) => boolean) | null {
  const trimmed = query.trim();
  if (trimmed === "") return null;
  const expression = /^\/(.+)\/$/.exec(trimmed);
  if (expression) {
    try {
      const regex = new RegExp(expression[1], "i");
      return (text) => regex.test(text);
    } catch {
      return () => false;
    }
  }
  const words = trimmed.toLowerCase().split(",").map((word) => word.trim()).filter((word) => word !== "");
  if (words.length === 0) return null;
  return (text) => {
    const lower = text.toLowerCase();
    return words.some((word) => lower.includes(word));
  };
}

/** The functions that match, by name, signature or assembly. */
export function matching(functions: Func[], query: string): Uint8Array | null {
  const is = matcher(query);
  return is && Uint8Array.from(functions, (one) => (one.code !== CUT && (is(one.label) || is(one.signature) || is(one.module)) ? 1 : 0));
}

export interface Matched {
  /** Nodes that match, in order. */
  nodes: number[];
  /** The part of the whole that lies in or below them, each amount once. */
  share: number;
  /** Some of what there is no room for may match as well. */
  isLeast: boolean;
}

/** What of a tree matches. */
export function matchedIn(tree: CallTree, functions: Uint8Array, all: Func[]): Matched {
  const nodes: number[] = [];
  let [sum, covered] = [0, 0];
  let isLeast = false;
  for (let node = 1; node < tree.size; node++) {
    if (node >= covered && isCut(all, tree.func[node])) isLeast = true;
    if (!functions[tree.func[node]]) continue;
    nodes.push(node);
    if (node >= covered) {
      sum += tree.total[node];
      covered = tree.end[node];
    }
  }
  return { nodes, share: tree.total[0] > 0 ? sum / tree.total[0] : 0, isLeast };
}
