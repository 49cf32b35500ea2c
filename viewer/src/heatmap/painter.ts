// Paints layers into an image, pixel by pixel: fast enough for every frame while panning.

import { lastAtMost, type StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";
import type { Layer } from "./layer";

// Rows at least so many pixels high are set apart by a line.
const GAP_FROM = 10;

// Later layers are painted over earlier ones. `axis` gives steps their places.
export function paint(image: ImageData, layers: readonly Layer[], window: ViewWindow, axis: StepAxis): void {
  const { width, height } = image;
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(0);
  const tall = (window.y1 - window.y0) / height;
  const hasGaps = 1 / tall >= GAP_FROM;
  for (const layer of layers) {
    const columnOf = columnsOfPixels(layer, width, window, axis);
    let painted = -1;
    for (let y = 0; y < height; y++) {
      const at = window.y0 + (y + 0.5) * tall;
      const row = Math.floor(at);
      if (hasGaps && Math.floor(at + tall) !== row) continue;
      const levelRow = layer.levelRow[row] ?? -1;
      if (levelRow < 0) continue;
      const out = y * width;
      if (y > 0 && painted === levelRow && (!hasGaps || Math.floor(at - tall) === row)) {
        copyRow(pixels, out - width, out, columnOf);
      } else {
        const base = levelRow * layer.level.columns;
        for (let x = 0; x < width; x++) {
          const column = columnOf[x]!;
          if (column >= 0) pixels[out + x] = layer.colours[base + column]!;
        }
      }
      painted = levelRow;
    }
  }
}

// The layer may be narrower than the image; the rest of the row above belongs to others.
function copyRow(pixels: Uint32Array, from: number, to: number, columnOf: Int32Array): void {
  let start = 0;
  while (start < columnOf.length && columnOf[start]! < 0) start += 1;
  let end = columnOf.length;
  while (end > start && columnOf[end - 1]! < 0) end -= 1;
  pixels.copyWithin(to + start, from + start, from + end);
}

// By pixel: the layer's column, or -1 where it has none.
function columnsOfPixels(layer: Layer, width: number, window: ViewWindow, axis: StepAxis): Int32Array {
  const columns = new Int32Array(width);
  const wide = (window.x1 - window.x0) / width;
  const { firstSteps, lastSteps } = layer.block;
  const lastStep = lastSteps.at(-1) ?? -1;
  // A block that shows the whole run ends at the end of the axis, whatever lies behind its last step.
  const end = lastStep >= axis.lastStep ? Number.POSITIVE_INFINITY : axis.at(lastStep + 1);
  for (let x = 0; x < width; x++) {
    const at = window.x0 + (x + 0.5) * wide;
    columns[x] = at >= end ? -1 : lastAtMost(firstSteps, axis.stepAt(at));
  }
  return columns;
}
