// Times below or above what is drawn over the run.

import { roundStep } from "../model/scale";

/** Round times within a part of the run, at their places. */
export function Ticks({ seen: [from, to], most }: { seen: [number, number]; most: number }) {
  const wide = Math.max(1, to - from);
  const step = roundStep(wide, most);
  const first = Math.ceil(from / step);
  const ticks = Array.from({ length: Math.floor(to / step) - first + 1 }, (_, at) => (first + at) * step);
  const [unit, name] = to >= 1e9 ? [1e9, "s"] : to >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  return (
    <div class="ticks">
      {ticks.map((tick) => <span key={tick} style={{ left: `${((tick - from) / wide) * 100}%` }}>{(tick / unit).toFixed(digits)} {name}</span>)}
    </div>
  );
}
