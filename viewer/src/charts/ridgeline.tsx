// Distributions over the steps: a ridge for each step, or a map with the steps from left to right.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Histograms } from "../api/types";
import { sequential, unpack } from "../model/colour_map";
import { formatNumber, grouped } from "../model/number";
import { useSize } from "../parts/size";
import { token } from "../parts/token";
import { theme } from "../state/theme";

interface Props {
  histograms: Histograms;
  kind: "ridges" | "map";
  name: string;
  onPick(step: number): void;
}

const HEIGHT = 320;
const MARGIN = { left: 58, right: 14, top: 10, bottom: 26 };
// How far a ridge may reach over the ones behind it, in distances between ridges.
const OVERLAP = 4;

export function Ridgeline({ histograms, kind, name, onPick }: Props) {
  const [box, width] = useSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || inner.width <= 0) return;
    canvas.current.width = width * devicePixelRatio;
    canvas.current.height = HEIGHT * devicePixelRatio;
    context.scale(devicePixelRatio, devicePixelRatio);
    context.font = `11px ${token("--sans")}`;
    (kind === "ridges" ? drawRidges : drawMap)(context, histograms, inner);
  }, [histograms, kind, width, theme.value]);

  const { steps, edges } = histograms;
  const pick = (event: MouseEvent) => {
    const at =
      kind === "ridges"
        ? (event.offsetY - MARGIN.top - inner.height * 0.12) / (inner.height * 0.88)
        : (event.offsetX - MARGIN.left) / inner.width;
    const step = steps[Math.min(steps.length - 1, Math.max(0, Math.floor(at * steps.length)))];
    if (step !== undefined) onPick(step);
  };
  return (
    <div ref={box} class="ridgeline" style={{ height: HEIGHT }}>
      <canvas
        ref={canvas}
        style={{ width, height: HEIGHT }}
        role="img"
        aria-label={`Distribution of ${name} at ${steps.length} steps from ${steps[0]} to ${steps.at(-1)}, values from ${formatNumber(edges[0])} to ${formatNumber(edges.at(-1))}`}
        onClick={pick}
      />
    </div>
  );
}

type Inner = { width: number; height: number };

function drawRidges(
  context: CanvasRenderingContext2D,
  { counts, steps, edges }: Histograms,
  inner: Inner,
): void {
  const peak = Math.max(1, ...counts.flat());
  const room = inner.height * 0.88;
  const distance = room / Math.max(1, steps.length);
  const tall = Math.min(inner.height * 0.3, distance * OVERLAP);
  const bins = edges.length - 1;
  context.lineJoin = "round";
  let lastText = Number.NEGATIVE_INFINITY;
  for (const [at, bars] of counts.entries()) {
    const base = MARGIN.top + inner.height - room + (at + 1) * distance;
    context.beginPath();
    context.moveTo(MARGIN.left, base);
    for (const [bin, count] of bars.entries()) {
      context.lineTo(MARGIN.left + ((bin + 0.5) / bins) * inner.width, base - Math.sqrt(count / peak) * tall);
    }
    context.lineTo(MARGIN.left + inner.width, base);
    context.fillStyle = token("--panel");
    context.fill();
    context.fillStyle = ridgeColour(at / Math.max(1, counts.length - 1), 0.35);
    context.fill();
    context.strokeStyle = ridgeColour(at / Math.max(1, counts.length - 1), 1);
    context.lineWidth = 1;
    context.stroke();
    if (base - lastText >= 24) {
      lastText = base;
      context.fillStyle = token("--muted");
      context.textAlign = "right";
      context.fillText(grouped(steps[at]!), MARGIN.left - 8, base);
    }
  }
  drawValues(context, edges, (share) => [MARGIN.left + share * inner.width, HEIGHT - 8], "center");
}

// From blue, early, to the colour of text, late: the newest stands out in front.
function ridgeColour(share: number, alpha: number): string {
  const [from, to] = [token("--ridge-early"), token("--ridge-late")];
  const percent = Math.round(share * 100);
  return `color-mix(in oklab, color-mix(in oklab, ${to} ${percent}%, ${from}) ${alpha * 100}%, transparent)`;
}

function drawMap(
  context: CanvasRenderingContext2D,
  { counts, steps, edges }: Histograms,
  inner: Inner,
): void {
  const bins = edges.length - 1;
  const peak = Math.max(1, ...counts.flat());
  const [wide, tall] = [inner.width / Math.max(1, steps.length), inner.height / Math.max(1, bins)];
  for (const [at, bars] of counts.entries()) {
    for (const [bin, count] of bars.entries()) {
      if (count === 0) continue;
      const share = Math.log1p(count) / Math.log1p(peak);
      context.fillStyle = `rgb(${unpack(sequential[Math.round(share * 255)]!).join(" ")})`;
      const y = MARGIN.top + (bins - 1 - bin) * tall;
      context.fillRect(MARGIN.left + at * wide, y, wide + 0.5, tall + 0.5);
    }
  }
  drawValues(
    context,
    edges,
    (share) => [MARGIN.left - 8, MARGIN.top + (1 - share) * inner.height + 4],
    "right",
  );
  context.fillStyle = token("--muted");
  context.textAlign = "left";
  const every = Math.max(1, Math.ceil((steps.length * 70) / inner.width));
  for (let at = 0; at < steps.length; at += every) {
    context.fillText(grouped(steps[at]!), MARGIN.left + at * wide, HEIGHT - 8);
  }
}

function drawValues(
  context: CanvasRenderingContext2D,
  edges: readonly number[],
  place: (share: number) => [number, number],
  align: CanvasTextAlign,
): void {
  const [low, high] = [edges[0] ?? 0, edges.at(-1) ?? 0];
  context.fillStyle = token("--muted");
  context.textAlign = align;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    context.fillText(formatNumber(low + share * (high - low)), ...place(share));
  }
}
