// Collections: how long the program stood still, and how large the heap was before and after, over the run; then the tables.

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Document, Section } from "../data/document";
import { bytes, count, time } from "../data/format";
import type { State } from "../state";
import { Sections } from "./section";

interface Props {
  documents: Document[];
  /** Duration of the run. */
  whole: [number, number];
  state: State;
  update(change: Partial<State>, push?: boolean): void;
  dark: boolean;
}

/** Colours of generations, told apart without red and green. */
const GENERATIONS = ["#0b7fc0", "#b07400", "#a8327e"];

export function Collections({ documents, whole, state, update, dark }: Props) {
  const section = documents.find((document) => document.view === "gc")?.main;
  const choose = (range: [number, number] | null) => update({ range }, true);
  return (
    <div class="collections">
      {section && section.rows > 0 && (
        <div class="charts">
          <Pauses section={section} whole={whole} range={state.range} choose={choose} dark={dark} />
          <Sizes section={section} whole={whole} range={state.range} choose={choose} dark={dark} />
        </div>
      )}
      <Sections documents={documents} search={state.search} range={state.range} sort={state.sort} onSort={(sort) => update({ sort })} />
    </div>
  );
}

interface ChartProps {
  section: Section;
  whole: [number, number];
  range: [number, number] | null;
  choose(range: [number, number] | null): void;
  dark: boolean;
}

const numbers = (section: Section, key: string): number[] => {
  const column = section.column(key);
  return Array.from({ length: section.rows }, (_, row) => column?.number(row) ?? 0);
};

/** A bar for each collection, by generation. */
function Pauses(props: ChartProps) {
  const { section } = props;
  const data = useMemo(() => {
    const [starts, pauses, generations] = ["start_ns", "pause_ns", "generation"].map((key) => numbers(section, key));
    const of = (wanted: number) => pauses.map((pause, row) => (Math.min(generations[row], 2) === wanted ? pause : null));
    return ordered([starts.map((ns) => ns / 1e9), of(0), of(1), of(2)]);
  }, [section]);
  const longest = Math.max(...numbers(section, "pause_ns"));
  const sum = numbers(section, "pause_ns").reduce((a, b) => a + b, 0);
  return (
    <Chart {...props} label={`Pauses: ${count(section.rows)} collections stopped the program for ${time(sum)}, the longest for ${time(longest)}`} data={data} format={time} bars series={GENERATIONS.map((stroke, number) => ({ label: `generation ${number}`, stroke }))} />
  );
}

/** The heap before and after each collection. */
function Sizes(props: ChartProps) {
  const { section } = props;
  const data = useMemo(() => {
    const [starts, before, after] = ["start_ns", "heap_before_bytes", "heap_after_bytes"].map((key) => numbers(section, key));
    const known = (all: number[]) => all.map((size) => (size > 0 ? size : null));
    return ordered([starts.map((ns) => ns / 1e9), known(before), known(after)]);
  }, [section]);
  const largest = Math.max(...numbers(section, "heap_before_bytes"));
  if (largest <= 0) return null;
  return (
    <Chart {...props} label={`Size of the heap: ${bytes(largest)} at most before a collection`} data={data} format={bytes} series={[{ label: "before", stroke: "#b07400" }, { label: "after", stroke: "#0b7fc0" }]} />
  );
}

type Data = (number | null)[][];

/** Points in the order of time, as charts need them. */
function ordered(data: Data): Data {
  const order = data[0].map((_, at) => at).sort((a, b) => data[0][a]! - data[0][b]!);
  return data.map((column) => order.map((at) => column[at]));
}

interface DrawnProps extends ChartProps {
  label: string;
  data: Data;
  format(value: number): string;
  bars?: boolean;
  series: { label: string; stroke: string }[];
}

function Chart({ label, data, format, bars, series, whole, range, choose, dark }: DrawnProps) {
  const place = useRef<HTMLDivElement>(null);
  const chosen = useRef(choose);
  chosen.current = choose;
  useEffect(() => {
    const element = place.current!;
    const [ink, grid] = dark ? ["#d8d8d8", "#ffffff22"] : ["#333333", "#00000018"];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const chart = new uPlot(
      {
        width: element.clientWidth || 300,
        height: 170,
        scales: { x: { time: false, range: range ? [range[0] / 1e9, range[1] / 1e9] : [whole[0] / 1e9, whole[1] / 1e9] }, y: { range: (_, __, most) => [0, (most || 1) * 1.05] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map((at) => time(at * 1e9)) },
          { ...axis, size: 74, values: (_, ticks) => ticks.map((at) => format(at)) },
        ],
        series: [
          { label: "at", value: (_, at) => (at === null ? "" : time(at * 1e9)) },
          ...series.map(({ label, stroke }) => ({
            label,
            stroke,
            fill: bars ? stroke : undefined,
            width: bars ? 1 : 1.5,
            points: { show: !bars && data[0].length < 200, size: 4 },
            paths: bars ? uPlot.paths.bars!({ size: [0.6, 8, 2] }) : undefined,
            value: (_: uPlot, value: number | null) => (value === null ? "" : format(value)),
          })),
        ],
        cursor: { drag: { x: true, y: false, setScale: false } },
        hooks: {
          setSelect: [
            (chart) => {
              const { left, width } = chart.select;
              if (width > 2) chosen.current([chart.posToVal(left, "x") * 1e9, chart.posToVal(left + width, "x") * 1e9]);
            },
          ],
        },
      },
      data as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: 170 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [data, dark, whole.join(), range?.join()]);
  return (
    <figure class="chart">
      <figcaption>{label}; drag to choose a part of the time</figcaption>
      <div ref={place} />
    </figure>
  );
}
