// The keyboard on a heat map: a cursor that goes from cell to cell.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Module } from "../api/types";
import type { RowLayout } from "../model/row_layout";
import { clamp, type Extent, type ViewWindow, whole, zoom } from "../model/view_window";

interface Options {
  window: ViewWindow;
  setWindow(window: ViewWindow): void;
  extent: Extent;
  height: number;
  open(row: number, x: number): void;
  toggle(path: string): void;
  layout: RowLayout | null;
  modules: readonly Module[];
}

export interface CellCursor {
  row: number;
  x: number;
}

const FAR = 10;
const ZOOM = 1.6;

export function useKeys({ window, setWindow, extent, height, open, toggle, layout, modules }: Options) {
  const [cursor, setCursor] = useState<CellCursor | null>(null);
  // Where a row is smaller than a pixel, a step goes to the next one that can be seen.
  const stride = Math.max(1, Math.round((window.y1 - window.y0) / height));

  const move = (from: CellCursor, dx: number, dy: number) => {
    const to = {
      x: Math.min(extent.columns - 1, Math.max(0, Math.floor(from.x) + dx)),
      row: Math.min(extent.rows - 1, Math.max(0, from.row + dy * stride)),
    };
    setCursor(to);
    const inside = shownIn(window, to);
    if (inside !== window) setWindow(clamp(inside, extent));
  };

  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey || extent.rows === 0) return;
    const here = cursor ?? { row: Math.floor(window.y0), x: Math.floor(window.x0) };
    const far = event.shiftKey ? FAR : 1;
    const centre = [here.x + 0.5, here.row + 0.5] as const;
    const page = Math.max(1, Math.floor((window.y1 - window.y0) / stride) - 1);
    const actions: Record<string, () => void> = {
      ArrowLeft: () => move(here, -far, 0),
      ArrowRight: () => move(here, far, 0),
      ArrowUp: () => move(here, 0, -far),
      ArrowDown: () => move(here, 0, far),
      PageUp: () => move(here, 0, -page),
      PageDown: () => move(here, 0, page),
      Home: () => move(here, -extent.columns, 0),
      End: () => move(here, extent.columns, 0),
      Enter: () => open(here.row, here.x),
      "+": () => setWindow(zoom(window, ZOOM, ...centre, extent)),
      "=": () => setWindow(zoom(window, ZOOM, ...centre, extent)),
      "-": () => setWindow(zoom(window, 1 / ZOOM, ...centre, extent)),
      "0": () => setWindow(whole(extent)),
      c: () => {
        const module = layout && moduleOf(layout, here.row);
        if (module !== null) toggle(modules[module]!.path);
      },
      Escape: () => setCursor(null),
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const handlers: JSX.HTMLAttributes<HTMLDivElement> = { onKeyDown, onBlur: () => setCursor(null) };
  return { cursor, handlers };
}

// The module that a row lies in or is; null for the model itself.
function moduleOf(layout: RowLayout, row: number): number | null {
  const { module, first } = layout.rows[row] ?? { module: null, first: 0 };
  return module ?? (layout.tensors[first]?.module || null);
}

// The window, moved so far that the cell is on the screen.
function shownIn(window: ViewWindow, { row, x }: CellCursor): ViewWindow {
  const shift = (low: number, high: number, at: number) =>
    at < low ? at - low : at + 1 > high ? at + 1 - high : 0;
  const [dx, dy] = [shift(window.x0, window.x1, x), shift(window.y0, window.y1, row)];
  if (dx === 0 && dy === 0) return window;
  return { x0: window.x0 + dx, x1: window.x1 + dx, y0: window.y0 + dy, y1: window.y1 + dy };
}
