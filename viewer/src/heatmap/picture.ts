// A heat map as a picture of its own, with names, steps and legend, at twice the usual resolution.

import { ALARM, css, pack, SIZE } from "../model/colour_map";
import { valueAt } from "../model/colour_scale";
import { formatNumber } from "../model/number";
import { namedSpans, rowLabel } from "../model/row_layout";
import { token } from "../parts/token";
import type { ActionProps } from "./actions";
import { draw } from "./canvas";
import { drawMark, markColours, SEVERITIES } from "./mark";
import { stepTicks } from "./step_ticks";

const RATIO = 2;
const SIZE_PX = { width: 900, height: 520 };
const MARGIN = { left: 250, top: 40, right: 20, bottom: 84 };
const LINE = 13;

export function picture(props: ActionProps): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = (MARGIN.left + SIZE_PX.width + MARGIN.right) * RATIO;
  canvas.height = (MARGIN.top + SIZE_PX.height + MARGIN.bottom) * RATIO;
  const context = canvas.getContext("2d")!;
  context.scale(RATIO, RATIO);
  context.fillStyle = token("--panel");
  context.fillRect(0, 0, canvas.width, canvas.height);

  context.drawImage(plot(props), MARGIN.left, MARGIN.top, SIZE_PX.width, SIZE_PX.height);
  context.fillStyle = token("--text");
  context.textBaseline = "middle";
  context.font = `600 15px ${token("--sans")}`;
  context.fillText(props.label, 12, 20, MARGIN.left + SIZE_PX.width - 12);
  context.font = `11px ${token("--sans")}`;
  drawNames(context, props);
  drawSteps(context, props);
  drawLegend(context, props);
  return canvas;
}

function plot({ layers, marks, window, axis, layout }: ActionProps): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE_PX.width * RATIO;
  canvas.height = SIZE_PX.height * RATIO;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  draw(context, image, { layers, window, axis, layout, size: SIZE_PX, marks }, RATIO);
  return canvas;
}

function drawNames(context: CanvasRenderingContext2D, { layout, modules, window }: ActionProps): void {
  const tall = SIZE_PX.height / (window.y1 - window.y0);
  const names =
    tall >= LINE
      ? layout.rows.map((_, row) => ({ start: row, end: row + 1, name: rowLabel(layout, modules, row) }))
      : namedSpans(layout.spans, LINE / tall).map(({ start, end, path }) => ({ start, end, name: path }));
  context.textAlign = "right";
  for (const { start, end, name } of names) {
    const from = Math.max(0, (start - window.y0) * tall);
    const to = Math.min(SIZE_PX.height, (end - window.y0) * tall);
    if (to < from) continue;
    context.fillText(name, MARGIN.left - 8, MARGIN.top + (from + to) / 2, MARGIN.left - 16);
  }
}

function drawSteps(context: CanvasRenderingContext2D, { axis, window }: ActionProps): void {
  const y = MARGIN.top + SIZE_PX.height + 14;
  context.textAlign = "left";
  for (const { text, x } of stepTicks(axis, window, SIZE_PX.width)) {
    context.fillText(text, MARGIN.left + x, y);
  }
}

function drawLegend(context: CanvasRenderingContext2D, props: ActionProps): void {
  const { scale, palette, unit } = props;
  const [left, top, width] = [MARGIN.left, MARGIN.top + SIZE_PX.height + 38, 300];
  for (let i = 0; i < SIZE; i++) {
    context.fillStyle = css(palette[i]!);
    context.fillRect(left + (i * width) / SIZE, top, width / SIZE + 1, 10);
  }
  context.fillStyle = css(pack(ALARM));
  context.fillRect(left + width + 30, top, 10, 10);
  context.fillStyle = token("--text");
  context.fillText("NaN or ∞", left + width + 46, top + 5);
  drawSeverities(context, props, left + width + 130, top + 5);
  context.fillText(formatNumber(valueAt(scale, 0)), left, top + 22);
  context.textAlign = "right";
  context.fillText(formatNumber(valueAt(scale, 1)), left + width, top + 22);
  context.fillText(unit, left - 10, top + 5, MARGIN.left - 20);
}

// What the marks on the picture stand for.
function drawSeverities(
  context: CanvasRenderingContext2D,
  { marks }: ActionProps,
  left: number,
  y: number,
): void {
  let x = left;
  for (const severity of SEVERITIES) {
    const mark = marks.find((one) => one.severity === severity);
    if (mark === undefined) continue;
    drawMark(context, x, y, severity, markColours());
    context.fillStyle = token("--text");
    context.fillText(mark.sort, x + 10, y);
    x += 24 + context.measureText(mark.sort).width;
  }
}
