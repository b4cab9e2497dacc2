// One request over time: which thread worked for it when, what its methods awaited, what was thrown.

import { useMemo, useState } from "preact/hooks";
import { AWAITED, EXCEPTION, STATES_OF_TIME } from "../colours";
import type { Document } from "../data/document";
import { between, count, time } from "../data/format";
import { type Step, stepsOf } from "../model/steps";
import { Ticks } from "./ticks";

const KINDS: { kind: Step["kind"]; label: string; colour: string }[] = [
  { kind: "runs", label: "a thread works for it", colour: STATES_OF_TIME.running.colour },
  { kind: "awaits", label: AWAITED.label, colour: AWAITED.colour },
];

/** Steps of a request, where the document shows one. */
export function StepsOverTime({ document }: { document: Document }) {
  const steps = useMemo(() => stepsOf(document), [document]);
  const [told, setTold] = useState("");
  if (!steps) return null;
  const all = steps.lanes.flatMap((lane) => lane.steps);
  const part = (ns: number) => `${(ns / steps.took) * 100}%`;
  const onMove = (event: PointerEvent) => {
    const [lane, at] = ((event.target as HTMLElement).closest<HTMLElement>("[data-step]")?.dataset.step ?? "").split(".").map(Number);
    const step = steps.lanes[lane]?.steps[at];
    setTold(step ? inWords(step, steps.lanes[lane].label) : "");
  };
  return (
    <figure class="heat">
      <div class="step-lanes" role="img" aria-label={`${count(all.length)} steps of a request over ${time(steps.took)}; the table below has the same.`} onPointerMove={onMove} onPointerLeave={() => setTold("")}>
        {steps.lanes.map((lane, number) => (
          <div class="step-lane" key={number}>
            <span class="lane-label" title={lane.label}>{lane.label}</span>
            <div class="step-strip">
              {lane.steps.map((step, at) =>
                step.kind === "throws" ? (
                  <span class="step-throw" key={at} data-step={`${number}.${at}`} style={{ left: part(step.after), color: EXCEPTION.colour }}>{EXCEPTION.shape}</span>
                ) : (
                  <div class={`step ${step.kind}`} key={at} data-step={`${number}.${at}`} style={{ left: part(step.after), width: part(step.took), background: KINDS.find(({ kind }) => kind === step.kind)?.colour }}>
                    {step.kind === "runs" ? step.method : step.what}
                  </div>
                ),
              )}
            </div>
          </div>
        ))}
        <div class="step-lane">
          <span />
          <div class="heat-times"><Ticks seen={[0, steps.took]} most={innerWidth < 600 ? 3 : 8} /></div>
        </div>
      </div>
      <div class="told">{told || `${time(steps.took)} from its start to its end`}</div>
      <div class="legend">
        {KINDS.filter(({ kind }) => all.some((step) => step.kind === kind)).map(({ label, colour }) => <span key={label}><span class="mark" style={{ background: colour }} />{label}</span>)}
        {all.some((step) => step.kind === "throws") && <span><span style={{ color: EXCEPTION.colour }}>{EXCEPTION.shape}</span> {EXCEPTION.label}</span>}
      </div>
    </figure>
  );
}

/** What a step is, when, and where. */
function inWords(step: Step, lane: string): string {
  const where = step.method && `in ${step.method}${step.line ? ` (${step.line})` : ""}`;
  const when = step.took > 0 ? `${between(step.after, step.after + step.took)} after its start, ${time(step.took)}` : `${time(step.after)} after its start`;
  const what = step.kind === "runs" ? `runs on ${lane}` : `${step.kind} ${step.what}`;
  return [what.trim(), where, when, ...(step.isPending ? ["not finished when the recording ended"] : [])].filter(Boolean).join(" · ");
}
