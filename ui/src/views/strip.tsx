// A strip over the time in sight, on which somebody may have chosen a part.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Sight {
  /** The part of the time that is in sight. */
  seen: [number, number];
  /** The part that was chosen. */
  range: [number, number] | null;
  dark: boolean;
}

interface Props extends Sight {
  /** Height on the screen. */
  high: number;
  /** Draws what is in sight: `x` is the place of a time, `width` that of its end. */
  draw(context: CanvasRenderingContext2D, x: (ns: number) => number, width: number): void;
  /** What `draw` depends on beside the time in sight. */
  of: unknown[];
}

export function Strip({ seen, range, dark, high, draw, of }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(canvas.current?.clientWidth ?? 0));
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const ratio = window.devicePixelRatio || 1;
    const element = canvas.current!;
    element.width = Math.max(1, Math.round(width * ratio));
    element.height = Math.round(high * ratio);
    const context = element.getContext("2d");
    if (!context || width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scale = width / (seen[1] - seen[0]);
    const x = (ns: number) => (ns - seen[0]) * scale;
    draw(context, x, width);
    if (range) {
      context.fillStyle = dark ? "#000000a0" : "#ffffffb0";
      context.fillRect(0, 0, x(range[0]), high);
      context.fillRect(Math.max(0, x(range[1])), 0, width, high);
    }
  }, [...of, seen, range, width, dark]);
  return <canvas class="strip" ref={canvas} aria-hidden="true" />;
}
