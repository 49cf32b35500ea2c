import { describe, expect, it } from "vitest";
import type { HeatmapBlock } from "../api/heatmap_block";
import { coarser } from "./pyramid";

const NAN = Number.NaN;
const BLOCK: HeatmapBlock = {
  rows: 3,
  columns: 2,
  isTensorPerRow: false,
  isStepPerColumn: true,
  catalogue: 1,
  choiceCount: 4,
  stepCount: 2,
  ids: new Uint32Array([0, 1, 2, 3]),
  rowBounds: new Uint32Array([0, 1, 3, 4]),
  firstSteps: [0, 1],
  lastSteps: [0, 1],
  mean: new Float32Array([1, NAN, 4, 5, 7, NAN]),
  min: new Float32Array([1, NAN, 3, 5, 7, NAN]),
  max: new Float32Array([1, NAN, 5, 5, 7, NAN]),
  nonfinite: new Uint16Array([0, 0, 0, 65535, 0, 2]),
};

describe("coarser", () => {
  it("puts rows together with the weight of their tensors", () => {
    const level = coarser(BLOCK, [0, 2, 3]);
    expect([...level.mean]).toEqual([3, 5, 7, NAN]);
    expect([...level.min]).toEqual([1, 5, 7, NAN]);
    expect([...level.max]).toEqual([5, 5, 7, NAN]);
  });

  it("loses no number that was not finite", () => {
    expect([...coarser(BLOCK, [0, 3]).nonfinite]).toEqual([0, 65537]);
  });
});
