// The blocks of a heat map: one of the whole run, and when that is too coarse for what is on the screen,
// a finer one of the part that is.

import { useEffect, useMemo, useState } from "preact/hooks";
import { address, type Parameter } from "../api/address";
import type { HeatmapBlock } from "../api/heatmap_block";
import { source } from "../api/source";
import type { Catalogue } from "../api/types";
import { layoutRows, type RowLayout } from "../model/row_layout";
import { StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";
import { useHeatmap, useLast } from "../state/answer";

// What is asked for, without the part and the size.
export interface HeatmapQuestion {
  path: string;
  parameters: Record<string, Parameter>;
  revision: unknown;
}

export interface HeatmapData {
  base: HeatmapBlock | null;
  detail: { block: HeatmapBlock; offset: number } | null;
  layout: RowLayout | null;
  axis: StepAxis;
  problem: Error | null;
  isPending: boolean;
}

// Reports hold exactly this size.
const REPORT_SIZE = 400;
const ALL_CHANNELS = "mean,min,max";
const MOST_ROWS = 20_000;
// Cells of a block in which every tensor has its own row, which collapsed modules need.
const MOST_CELLS = 1_500_000;
const SETTLE_MILLIS = 120;
// How much more than the screen a finer part shows at each side, as a share of the screen.
const MARGIN = 0.4;

export function useHeatmapData(
  question: HeatmapQuestion | null,
  catalogue: Catalogue | null,
  collapsed: readonly string[],
  size: { width: number; height: number },
  window: ViewWindow | null,
): HeatmapData {
  const tensorCount = catalogue?.tensors.length ?? 0;
  const base = useHeatmap(
    question && size.width > 0 ? baseAddress(question, size, collapsed.length > 0, tensorCount) : null,
    question?.revision,
  );
  const owner = JSON.stringify([question?.path, question?.parameters]);
  const block = useLast(base.value, owner);
  const axis = useMemo(() => new StepAxis(block?.firstSteps ?? [], block?.lastSteps.at(-1) ?? 0), [block]);
  const layout = useMemo(
    () => (block && catalogue ? layoutRows(block.ids, catalogue, collapsed) : null),
    [block, catalogue, collapsed.join("\n")],
  );

  const part = useSettled(
    block && layout && window && !source.isReport ? finerPart(block, layout, axis, window, size) : null,
  );
  const partAddress =
    question && part
      ? address(question.path, { ...question.parameters, ...part, channels: ALL_CHANNELS })
      : null;
  const finer = useHeatmap(partAddress, question?.revision);
  const held = useLast(
    useMemo(() => finer.value && part && { block: finer.value, offset: part.first }, [finer.value]),
    owner,
  );

  return {
    base: block,
    detail: part ? held : null,
    layout,
    axis,
    problem: base.problem,
    isPending: base.isPending,
  };
}

function baseAddress(
  { path, parameters }: HeatmapQuestion,
  size: { width: number; height: number },
  isCollapsed: boolean,
  tensors: number,
): string {
  if (source.isReport) {
    return address(path, { ...parameters, channels: ALL_CHANNELS, rows: REPORT_SIZE, columns: REPORT_SIZE });
  }
  // No more rows than pixels, so that none must be put together here.
  const rows = isCollapsed ? Math.min(MOST_ROWS, tensors) : Math.floor(size.height / 50) * 50;
  const columns = isCollapsed
    ? Math.min(stepped(size.width), Math.floor(MOST_CELLS / rows))
    : stepped(size.width);
  return address(path, { ...parameters, channels: ALL_CHANNELS, rows: Math.max(1, rows), columns });
}

// Small changes of the screen's size ask nothing new.
function stepped(pixels: number): number {
  return Math.min(4000, Math.max(200, Math.ceil(pixels / 100) * 100));
}

interface Part {
  first: number;
  count: number;
  from: number;
  to: number;
  rows: number;
  columns: number;
}

// The part of the whole that should be asked for; null where the block of the whole is fine enough.
export function finerPart(
  block: HeatmapBlock,
  layout: RowLayout,
  axis: StepAxis,
  window: ViewWindow,
  size: { width: number; height: number },
): Part | null {
  const [marginX, marginY] = [(window.x1 - window.x0) * MARGIN, (window.y1 - window.y0) * MARGIN];
  const top = layout.rows[Math.max(0, Math.floor(window.y0 - marginY))];
  const bottom = layout.rows[Math.min(layout.rows.length - 1, Math.ceil(window.y1 + marginY))];
  if (!top || !bottom || block.columns === 0) return null;
  const first = top.first;
  const count = bottom.end - first;
  const isZoomedX = window.x1 - window.x0 < axis.columns;
  const isZoomedY = window.y1 - window.y0 < layout.rows.length;
  const isCoarse = (isZoomedX && !block.isStepPerColumn) || (isZoomedY && !block.isTensorPerRow);
  const isCutShort = layout.isCollapsed && !block.isStepPerColumn && block.columns < stepped(size.width);
  if (!isCoarse && !(isCutShort && (isZoomedX || isZoomedY))) return null;
  const from = axis.stepAt(Math.max(0, window.x0 - marginX));
  const to = Math.min(axis.lastStep, axis.stepAt(Math.min(axis.columns, window.x1 + marginX))) + 1;
  const spread = 1 + 2 * MARGIN;
  return {
    first,
    count,
    from,
    to,
    rows: layout.isCollapsed ? Math.min(MOST_ROWS, count) : stepped(size.height * spread),
    columns: stepped(size.width * spread),
  };
}

// The value once it has not changed for a moment.
function useSettled<T>(value: T): T {
  const key = JSON.stringify(value);
  const [settled, setSettled] = useState({ key, value });
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled({ key, value }), SETTLE_MILLIS);
    return () => window.clearTimeout(timer);
  }, [key]);
  return settled.value;
}
