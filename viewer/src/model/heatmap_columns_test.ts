import { describe, expect, it } from "vitest";
import type { HeatmapBlock } from "../api/heatmap_block";
import { withoutEmptyColumns } from "./heatmap_columns";

const NAN = Number.NaN;

function block(mean: number[], nonfinite: number[]): HeatmapBlock {
  const plane = new Float32Array(mean);
  return {
    rows: 2,
    columns: 3,
    isTensorPerRow: true,
    isStepPerColumn: true,
    catalogue: 1,
    choiceCount: 2,
    stepCount: 3,
    ids: new Uint32Array([0, 1]),
    rowBounds: new Uint32Array([0, 1, 2]),
    firstSteps: [0, 1, 2],
    lastSteps: [0, 1, 2],
    mean: plane,
    min: plane,
    max: plane,
    nonfinite: new Uint16Array(nonfinite),
  };
}

describe("withoutEmptyColumns", () => {
  it("leaves out steps at which nothing of the choice was saved", () => {
    const shown = withoutEmptyColumns(block([1, NAN, 3, NAN, NAN, 6], [0, 0, 0, 0, 0, 0]));
    expect(shown).toMatchObject({ columns: 2, firstSteps: [0, 2], lastSteps: [0, 2] });
    expect([...shown.mean]).toEqual([1, 3, NAN, 6]);
    expect([...shown.max]).toEqual([1, 3, NAN, 6]);
  });

  it("keeps a step at which all that was saved is not finite", () => {
    expect(withoutEmptyColumns(block([1, NAN, 3, 4, NAN, 6], [0, 0, 0, 0, 2, 0])).columns).toBe(3);
  });

  it("leaves a full or an empty map alone", () => {
    const full = block([1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]);
    expect(withoutEmptyColumns(full)).toBe(full);
    const empty = block([NAN, NAN, NAN, NAN, NAN, NAN], [0, 0, 0, 0, 0, 0]);
    expect(withoutEmptyColumns(empty)).toBe(empty);
  });
});
