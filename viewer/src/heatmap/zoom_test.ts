import { describe, expect, it } from "vitest";
import type { RowLayout } from "../model/row_layout";
import { StepAxis } from "../model/step_axis";
import { partOf, windowOf } from "./zoom";

const axis = new StepAxis([0, 10, 20, 30], 30);
// Three rows: a tensor, a collapsed module of three tensors, a tensor.
const layout = {
  tensors: new Array(5),
  rows: [
    { first: 0, end: 1, module: null },
    { first: 1, end: 4, module: 1 },
    { first: 4, end: 5, module: null },
  ],
  rowOfPosition: new Uint32Array([0, 1, 1, 1, 2]),
} as unknown as RowLayout;
const ALL = { from: null, to: null, first: null, count: null };

describe("parts of a heat map", () => {
  it("is everything when nothing is said, and says nothing when it is everything", () => {
    const window = windowOf(ALL, layout, axis);
    expect(window).toEqual({ x0: 0, x1: 4, y0: 0, y1: 3 });
    expect(partOf(window, layout, axis)).toEqual(ALL);
  });

  it("comes back as the same part", () => {
    const part = { from: 10, to: 30, first: 1, count: 4 };
    expect(windowOf(part, layout, axis)).toEqual({ x0: 1, x1: 3, y0: 1, y1: 3 });
    expect(partOf(windowOf(part, layout, axis), layout, axis)).toEqual(part);
  });

  it("stays inside when the run has become another one", () => {
    expect(windowOf({ from: 900, to: 990, first: 70, count: 9 }, layout, axis)).toEqual({
      x0: 3,
      x1: 4,
      y0: 2,
      y1: 3,
    });
  });
});
