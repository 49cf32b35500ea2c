// The part of a heat map that is on the screen, in columns and rows of the whole: zooming, panning, limits.

export interface ViewWindow {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

export interface Extent {
  columns: number;
  rows: number;
}

// Nothing is shown larger than this.
const LEAST = 1;

export function whole(extent: Extent): ViewWindow {
  return { x0: 0, x1: Math.max(LEAST, extent.columns), y0: 0, y1: Math.max(LEAST, extent.rows) };
}

export function isWhole(window: ViewWindow, extent: Extent): boolean {
  const all = whole(extent);
  return window.x0 <= all.x0 && window.x1 >= all.x1 && window.y0 <= all.y0 && window.y1 >= all.y1;
}

export function pan(window: ViewWindow, dx: number, dy: number, extent: Extent): ViewWindow {
  return clamp({ x0: window.x0 + dx, x1: window.x1 + dx, y0: window.y0 + dy, y1: window.y1 + dy }, extent);
}

// Makes everything `factor` times as large, with the given point staying where it is.
export function zoom(window: ViewWindow, factor: number, x: number, y: number, extent: Extent): ViewWindow {
  return clamp(
    {
      x0: x - (x - window.x0) / factor,
      x1: x + (window.x1 - x) / factor,
      y0: y - (y - window.y0) / factor,
      y1: y + (window.y1 - y) / factor,
    },
    extent,
  );
}

// The nearest window that lies inside and shows something.
export function clamp(window: ViewWindow, extent: Extent): ViewWindow {
  const [x0, x1] = clampSide(window.x0, window.x1, Math.max(LEAST, extent.columns));
  const [y0, y1] = clampSide(window.y0, window.y1, Math.max(LEAST, extent.rows));
  return { x0, x1, y0, y1 };
}

function clampSide(low: number, high: number, size: number): [number, number] {
  const length = Math.min(size, Math.max(LEAST, high - low));
  const start = Math.min(size - length, Math.max(0, low));
  return [start, start + length];
}
