// Places on a heat map at which a rule found something or two runs part.

import type { Severity } from "../api/types";
import type { RowLayout } from "../model/row_layout";
import type { StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";
import { token } from "../parts/token";

export interface Mark {
  tensorId: number;
  step: number;
  severity: Severity;
  text: string;
  // What the legend of a picture calls marks of this sort.
  sort: string;
}

export interface PlacedMark extends Mark {
  row: number;
  // Coordinate on the axis of steps.
  x: number;
}

export function placeMarks(marks: readonly Mark[], layout: RowLayout, axis: StepAxis): PlacedMark[] {
  const rowOf = new Map(layout.tensors.map((tensor, at) => [tensor.id, layout.rowOfPosition[at]!]));
  return marks.flatMap((mark) => {
    const row = rowOf.get(mark.tensorId);
    return row === undefined ? [] : [{ ...mark, row, x: axis.at(mark.step) }];
  });
}

const RADIUS = 4;
export const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

export type MarkColours = Record<Severity, string> & { halo: string };

// Of the present theme.
export function markColours(): MarkColours {
  return {
    error: token("--error-mark"),
    warning: token("--warning-mark"),
    info: token("--info-mark"),
    halo: token("--halo"),
  };
}

// Rings around the cells, in CSS pixels of a context of this size.
export function drawMarks(
  context: CanvasRenderingContext2D,
  marks: readonly PlacedMark[],
  window: ViewWindow,
  size: { width: number; height: number },
  colours: MarkColours,
): void {
  const [wide, tall] = [size.width / (window.x1 - window.x0), size.height / (window.y1 - window.y0)];
  for (const mark of marks) {
    const x = (mark.x + 0.5 - window.x0) * wide;
    const y = (mark.row + 0.5 - window.y0) * tall;
    if (x < -RADIUS || y < -RADIUS || x > size.width + RADIUS || y > size.height + RADIUS) continue;
    drawMark(context, Math.max(RADIUS, x), y, mark.severity, colours);
  }
}

export function drawMark(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  severity: Severity,
  colours: MarkColours,
): void {
  context.beginPath();
  context.arc(x, y, RADIUS, 0, 2 * Math.PI);
  context.fillStyle = colours[severity];
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = colours.halo;
  context.stroke();
}
