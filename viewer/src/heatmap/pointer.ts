// The pointer on a heat map: hover, click, brush to zoom, shift-drag and wheel to pan.

import type { JSX, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Extent, isWhole, pan, type ViewWindow, whole, zoom } from "../model/view_window";

interface Options {
  stage: RefObject<HTMLDivElement>;
  window: ViewWindow;
  setWindow(window: ViewWindow): void;
  extent: Extent;
  size: { width: number; height: number };
  open(row: number, x: number): void;
}

export interface Hover {
  left: number;
  top: number;
  // In columns and rows of the map.
  x: number;
  row: number;
}

interface Drag {
  kind: "brush" | "pan";
  left: number;
  top: number;
  window: ViewWindow;
}

// Shorter movements are clicks.
const CLICK_PIXELS = 4;
const WHEEL_ZOOM = 1.0015;

export function usePointer({ stage, window, setWindow, extent, size, open }: Options) {
  const [hover, setHover] = useState<Hover | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const wide = size.width / (window.x1 - window.x0);
  const tall = size.height / (window.y1 - window.y0);

  const point = (event: PointerEvent | WheelEvent | MouseEvent): Hover => {
    const box = stage.current!.getBoundingClientRect();
    const left = Math.min(size.width - 0.01, Math.max(0, event.clientX - box.left));
    const top = Math.min(size.height - 0.01, Math.max(0, event.clientY - box.top));
    return { left, top, x: window.x0 + left / wide, row: window.y0 + top / tall };
  };
  const isClick = (from: Drag, to: Hover) =>
    Math.abs(to.left - from.left) < CLICK_PIXELS && Math.abs(to.top - from.top) < CLICK_PIXELS;

  const handlers: JSX.HTMLAttributes<HTMLDivElement> = {
    onPointerDown(event) {
      if (event.button !== 0 && event.button !== 1) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      const { left, top } = point(event);
      const isPan = event.shiftKey || event.button === 1 || event.pointerType === "touch";
      setDrag({ kind: isPan ? "pan" : "brush", left, top, window });
    },
    onPointerMove(event) {
      const here = point(event);
      setHover(here);
      if (drag?.kind === "pan") {
        setWindow(pan(drag.window, (drag.left - here.left) / wide, (drag.top - here.top) / tall, extent));
      }
    },
    onPointerUp(event) {
      const here = point(event);
      setDrag(null);
      if (!drag) return;
      if (isClick(drag, here)) open(Math.floor(here.row), here.x);
      else if (drag.kind === "brush") setWindow(brushed(window, drag, here, wide, tall));
    },
    onPointerCancel() {
      setDrag(null);
    },
    onPointerLeave() {
      setHover(null);
    },
    onDblClick() {
      setWindow(whole(extent));
    },
  };

  const wheel = useRef<(event: WheelEvent) => void>(() => {});
  wheel.current = (event) => {
    const here = point(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      setWindow(zoom(window, WHEEL_ZOOM ** -event.deltaY, here.x, here.row, extent));
    } else if (!isWhole(window, extent)) {
      const [dx, dy] = event.shiftKey ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      const next = pan(window, dx / wide, dy / tall, extent);
      // At its end the map lets the page scroll on.
      if (next.x0 === window.x0 && next.y0 === window.y0) return;
      event.preventDefault();
      setWindow(next);
    }
  };
  useEffect(() => {
    const element = stage.current;
    const listen = (event: WheelEvent) => wheel.current(event);
    element?.addEventListener("wheel", listen, { passive: false });
    return () => element?.removeEventListener("wheel", listen);
  }, []);

  const brush =
    drag?.kind === "brush" && hover && !isClick(drag, hover)
      ? {
          left: Math.min(drag.left, hover.left),
          top: Math.min(drag.top, hover.top),
          width: Math.abs(drag.left - hover.left),
          height: Math.abs(drag.top - hover.top),
        }
      : null;
  return { hover: drag ? null : hover, brush, handlers };
}

// A brush that is flat means all rows, one that is narrow means all steps.
function brushed(window: ViewWindow, from: Drag, to: Hover, wide: number, tall: number): ViewWindow {
  const isNarrow = Math.abs(to.left - from.left) < 2 * CLICK_PIXELS;
  const isFlat = Math.abs(to.top - from.top) < 2 * CLICK_PIXELS;
  const x = [from.left, to.left].map((left) => window.x0 + left / wide).sort((a, b) => a - b) as [
    number,
    number,
  ];
  const y = [from.top, to.top].map((top) => window.y0 + top / tall).sort((a, b) => a - b) as [number, number];
  return {
    x0: isNarrow ? window.x0 : Math.floor(x[0]),
    x1: isNarrow ? window.x1 : Math.ceil(x[1]),
    y0: isFlat ? window.y0 : Math.floor(y[0]),
    y1: isFlat ? window.y1 : Math.ceil(y[1]),
  };
}
