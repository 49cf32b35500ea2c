// The part of a heat map that is shown, kept in the address as steps and tensors.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RowLayout } from "../model/row_layout";
import type { StepAxis } from "../model/step_axis";
import { clamp, type ViewWindow } from "../model/view_window";

// Steps [from, to) and tensors of the choice; null where it is everything.
export interface ViewPart {
  from: number | null;
  to: number | null;
  first: number | null;
  count: number | null;
}

const COMMIT_MILLIS = 200;

export function windowOf(part: ViewPart, layout: RowLayout | null, axis: StepAxis): ViewWindow {
  const rows = layout?.rows.length ?? 0;
  const rowOf = (position: number) =>
    layout?.rowOfPosition[Math.min(position, layout.tensors.length - 1)] ?? 0;
  const y0 = part.first === null ? 0 : rowOf(part.first);
  const y1 = part.count === null ? rows : rowOf((part.first ?? 0) + part.count - 1) + 1;
  const x0 = part.from === null ? 0 : axis.at(part.from);
  const x1 = part.to === null ? axis.columns : axis.at(part.to);
  return clamp({ x0, x1, y0, y1 }, { columns: axis.columns, rows });
}

export function partOf(window: ViewWindow, layout: RowLayout, axis: StepAxis): ViewPart {
  const isAllRows = window.y0 <= 0 && window.y1 >= layout.rows.length;
  const first = layout.rows[Math.floor(window.y0)]?.first ?? 0;
  const end =
    layout.rows[Math.min(layout.rows.length, Math.ceil(window.y1)) - 1]?.end ?? layout.tensors.length;
  return {
    from: window.x0 <= 0 ? null : axis.stepAt(window.x0),
    to: window.x1 >= axis.columns ? null : axis.stepAt(Math.ceil(window.x1)),
    first: isAllRows ? null : first,
    count: isAllRows ? null : end - first,
  };
}

// The window for a part, and how to change it: at once on the screen, a moment later in the address.
export function useViewWindow(
  part: ViewPart,
  onPart: (part: ViewPart) => void,
  layout: RowLayout | null,
  axis: StepAxis,
): [ViewWindow, (window: ViewWindow) => void] {
  const key = JSON.stringify(part);
  const derived = useRef<{ inputs: unknown[]; window: ViewWindow } | null>(null);
  const inputs = [key, layout, axis];
  if (!derived.current || derived.current.inputs.some((input, i) => input !== inputs[i])) {
    derived.current = { inputs, window: windowOf(part, layout, axis) };
  }
  // What the reader moved to, as long as nothing else changed.
  const [moved, setMoved] = useState<{ window: ViewWindow; layout: RowLayout | null; axis: StepAxis } | null>(
    null,
  );
  const committed = useRef(key);
  const isMoved = moved !== null && moved.layout === layout && moved.axis === axis;
  const isOwn = committed.current === key;
  const window = isMoved && isOwn ? moved.window : derived.current.window;

  useEffect(() => {
    if (!isMoved || !layout) return;
    const timer = globalThis.setTimeout(() => {
      const next = partOf(moved.window, layout, axis);
      committed.current = JSON.stringify(next);
      onPart(next);
    }, COMMIT_MILLIS);
    return () => globalThis.clearTimeout(timer);
  }, [moved]);

  const setWindow = (next: ViewWindow) => {
    committed.current = key;
    setMoved({
      window: clamp(next, { columns: axis.columns, rows: layout?.rows.length ?? 0 }),
      layout,
      axis,
    });
  };
  return [window, setWindow];
}
