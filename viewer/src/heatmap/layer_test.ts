import { describe, expect, it } from "vitest";
import type { HeatmapBlock } from "../api/heatmap_block";
import type { Catalogue } from "../api/types";
import { ALARM, pack, sequential } from "../model/colour_map";
import { fitScale } from "../model/colour_scale";
import { layoutRows } from "../model/row_layout";
import { cellAt, makeLayer } from "./layer";

const NAN = Number.NaN;

function blockOf(values: number[][], nonfinite: number[]): HeatmapBlock {
  const plane = new Float32Array(values.flat());
  return {
    rows: values.length,
    columns: values[0]!.length,
    isTensorPerRow: true,
    isStepPerColumn: true,
    catalogue: 1,
    choiceCount: values.length,
    stepCount: values[0]!.length,
    ids: new Uint32Array(values.map((_, i) => i)),
    rowBounds: new Uint32Array(values.length + 1).map((_, i) => i),
    firstSteps: [0, 10],
    lastSteps: [0, 10],
    mean: plane,
    min: plane,
    max: plane,
    nonfinite: new Uint16Array(nonfinite),
  };
}

const CATALOGUE: Catalogue = {
  catalogue: 1,
  collections: [],
  roles: [],
  tensors: [0, 1, 2, 3].map((id) => ({
    id,
    name: `t${id}`,
    module: id < 2 ? 1 : 0,
    role: "weight",
    collections: [],
    dtype: null,
    shape: null,
    statistics: [],
    has_value: false,
    modes: [],
  })),
  modules: [
    { path: "", name: "", parent: null, first: 0, count: 4 },
    { path: "m", name: "m", parent: 0, first: 0, count: 2 },
  ],
};
const BLOCK = blockOf(
  [
    [1, 2],
    [3, NAN],
    [5, 6],
    [7, NAN],
  ],
  [0, 0, 0, 1, 0, 0, 0, 0],
);
const COLOURING = { scale: fitScale(BLOCK.mean, "linear")!, palette: sequential, channel: "mean" as const };

describe("makeLayer", () => {
  it("colours numbers, alarms and gaps", () => {
    const layer = makeLayer(BLOCK, 0, layoutRows(BLOCK.ids, CATALOGUE, []), 100, COLOURING);
    expect(layer.colours[0]).toBe(sequential[0]);
    expect(layer.colours[6]).toBe(sequential[255]);
    expect(layer.colours[3]).toBe(pack(ALARM));
    expect(layer.colours[7]).toBe(0);
  });

  it("puts tensors of a collapsed module together", () => {
    const layout = layoutRows(BLOCK.ids, CATALOGUE, ["m"]);
    const layer = makeLayer(BLOCK, 0, layout, 100, COLOURING);
    expect([...layer.levelRow]).toEqual([0, 1, 2]);
    expect(cellAt(layer, layout, 0, 0)).toMatchObject({ mean: 2, min: 1, max: 3, first: 0, end: 2 });
    expect(cellAt(layer, layout, 0, 10)).toMatchObject({ mean: 2, nonfinite: 1 });
  });

  it("makes no more rows than the screen has", () => {
    const layout = layoutRows(BLOCK.ids, CATALOGUE, []);
    const layer = makeLayer(BLOCK, 0, layout, 2, COLOURING);
    expect(layer.level.rows).toBe(2);
    expect([...layer.levelRow]).toEqual([0, 0, 1, 1]);
    expect(cellAt(layer, layout, 3, 0)).toMatchObject({ mean: 6, first: 2, end: 4 });
  });

  it("knows where a part of the map lies in the whole", () => {
    const layout = layoutRows([0, 1, 2, 3], CATALOGUE, []);
    const part = { ...blockOf([[8, 9]], [0, 0]), ids: new Uint32Array([2]) };
    const layer = makeLayer(part, 2, layout, 10, COLOURING);
    expect([...layer.levelRow]).toEqual([-1, -1, 0, -1]);
    expect(cellAt(layer, layout, 2, 10)).toMatchObject({ mean: 9, first: 2, end: 3, firstStep: 10 });
    expect(cellAt(layer, layout, 0, 10)).toBeNull();
    expect(cellAt(layer, layout, 2, 11)).toBeNull();
  });
});
