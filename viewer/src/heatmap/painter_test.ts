import { describe, expect, it } from "vitest";
import type { HeatmapBlock } from "../api/heatmap_block";
import { StepAxis } from "../model/step_axis";
import type { Layer } from "./layer";
import { paint } from "./painter";

function layerOf(rows: number[][], firstSteps: number[], levelRow: number[]): Layer {
  const columns = firstSteps.length;
  const lastSteps = firstSteps.map((step, i) => (firstSteps[i + 1] ?? step + 10) - 1);
  const level = { rows: rows.length, columns } as Layer["level"];
  const block = { firstSteps, lastSteps } as unknown as HeatmapBlock;
  return { block, level, levelRow: new Int32Array(levelRow), colours: new Uint32Array(rows.flat()) };
}

function painted(layers: Layer[], width: number, height: number, window: [number, number, number, number]) {
  const data = new Uint8ClampedArray(width * height * 4);
  const image = { width, height, data } as unknown as ImageData;
  const [x0, x1, y0, y1] = window;
  paint(image, layers, { x0, x1, y0, y1 }, new StepAxis([0, 10, 20, 30], 39));
  const pixels = new Uint32Array(data.buffer);
  return Array.from({ length: height }, (_, y) => [...pixels.slice(y * width, (y + 1) * width)]);
}

const BASE = layerOf(
  [
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ],
  [0, 10, 20, 30],
  [0, 1],
);

describe("paint", () => {
  it("fills the image with the cells of the window", () => {
    expect(painted([BASE], 4, 2, [0, 4, 0, 2])).toEqual([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ]);
    expect(painted([BASE], 4, 2, [2, 4, 1, 2])).toEqual([
      [7, 7, 8, 8],
      [7, 7, 8, 8],
    ]);
  });

  it("paints a finer part over the whole, only where it has something", () => {
    const detail = layerOf([[91, 92]], [10, 15], [-1, 0]);
    detail.block.lastSteps[1] = 19;
    expect(painted([BASE, detail], 8, 2, [0, 4, 0, 2])).toEqual([
      [1, 1, 2, 2, 3, 3, 4, 4],
      [5, 5, 91, 92, 7, 7, 8, 8],
    ]);
    expect(painted([BASE, detail], 8, 4, [0, 4, 0, 2])[3]).toEqual([5, 5, 91, 92, 7, 7, 8, 8]);
  });

  it("sets tall rows apart", () => {
    const rows = painted([BASE], 1, 20, [0, 1, 0, 2]).map(([pixel]) => pixel);
    expect(rows).toEqual([...new Array(9).fill(1), 0, ...new Array(9).fill(5), 0]);
  });
});
