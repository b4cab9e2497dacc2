// One request over time: a lane per thread that worked for it, and lanes of what its methods awaited.

import type { Document, Json, Section } from "../data/document";
import { oneLine } from "../data/format";
import { partsOf, withoutNamespaces } from "../data/names";

export interface Step {
  kind: "runs" | "awaits" | "throws";
  /** Nanoseconds after the begin of the request. */
  after: number;
  took: number;
  isPending: boolean;
  /** The method, without its namespace; empty where it is not known. */
  method: string;
  /** File and line; empty where they are not known. */
  line: string;
  /** What is awaited or thrown; empty of a thread that works. */
  what: string;
}

export interface StepLane {
  label: string;
  isThread: boolean;
  steps: Step[];
}

export interface Steps {
  /** Nanoseconds from the begin of the request to its end, or to that of its last step. */
  took: number;
  lanes: StepLane[];
}

const endOf = (step: Step): number => step.after + step.took;

/** A lane in which nothing lies over the step: what runs at the same time is below. */
function laneFor(lanes: StepLane[], label: string, isThread: boolean, step: Step): StepLane {
  const last = (lane: StepLane) => lane.steps[lane.steps.length - 1];
  const found = lanes.find((lane) => lane.isThread === isThread && lane.label === label && (step.took === 0 || endOf(last(lane)) <= step.after));
  if (found) return found;
  const made = { label, isThread, steps: [] };
  lanes.push(made);
  return made;
}

/** The steps of the request of a document of the view `request`; null where it shows none. */
export function stepsOf(document: Document): Steps | null {
  const section = document.main;
  if (!section || section.rows === 0) return null;
  const text = (key: string, row: number) => oneLine(String((section.column(key)?.value(row) as Json | undefined) ?? ""));
  const lanes: StepLane[] = [];
  for (const row of inOrder(section)) {
    const file = text("file", row);
    const step: Step = {
      kind: text("kind", row) as Step["kind"],
      after: section.column("after_ns")!.number(row),
      took: section.column("duration_ns")!.number(row),
      isPending: section.column("pending")?.value(row) === true,
      method: partsOf(text("name", row))[1],
      line: file && `${file.slice(file.lastIndexOf("/") + 1)}:${text("line", row)}`,
      what: withoutNamespaces(text("what", row)),
    };
    const thread = text("thread_id", row);
    const label = step.kind === "awaits" ? step.method || "an async method" : `thread ${thread || "unknown"}`;
    laneFor(lanes, label, step.kind !== "awaits", step).steps.push(step);
  }
  // Threads first; else in the order in which they begin.
  lanes.sort((a, b) => Number(b.isThread) - Number(a.isThread));
  const request = document.sections.find((one) => one.packed.key === "request");
  const known = request && request.rows > 0 ? (request.column("duration_ns")?.number(0) ?? 0) : 0;
  const last = Math.max(...lanes.flatMap((lane) => lane.steps.map(endOf)));
  return { took: Math.max(known, last, 1), lanes };
}

const inOrder = (section: Section): number[] => {
  const after = section.column("after_ns")!;
  return Array.from({ length: section.rows }, (_, row) => row).sort((a, b) => after.number(a) - after.number(b));
};
