import { describe, expect, it } from "vitest";
import { fitScale, paletteIndex, position, valueAt } from "./colour_scale";

describe("colour scale", () => {
  it("spans the finite numbers", () => {
    const scale = fitScale(new Float32Array([1, Number.NaN, 3, Number.POSITIVE_INFINITY]), "linear")!;
    expect(scale).toMatchObject({ low: 1, high: 3, isCutHigh: false });
    expect(paletteIndex(scale, 1)).toBe(0);
    expect(paletteIndex(scale, 3)).toBe(255);
    expect(position(scale, 2)).toBe(0.5);
  });

  it("gives every decade the same share when logarithmic, and zero the lowest colour", () => {
    const scale = fitScale(new Float32Array([0, 0.001, 1, 1000]), "log")!;
    expect(position(scale, 1)).toBeCloseTo(0.5);
    expect(position(scale, 0)).toBe(0);
    expect(valueAt(scale, 0.5)).toBeCloseTo(1);
  });

  it("is linear where nothing is above zero", () => {
    expect(fitScale(new Float32Array([0, 0]), "log")).toMatchObject({ kind: "linear" });
  });

  it("puts zero in the middle of differences", () => {
    const scale = fitScale(new Float32Array([-1, 4]), "around_zero")!;
    expect(scale).toMatchObject({ low: -4, high: 4 });
    expect(position(scale, 0)).toBe(0.5);
  });

  it("shows the sign of numbers that have both", () => {
    expect(fitScale(new Float32Array([-2, 1]), "linear")).toMatchObject({
      kind: "around_zero",
      low: -2,
      high: 2,
    });
  });

  it("does not let a single outlier take all colours", () => {
    const values = new Float32Array(1000).map((_, i) => i / 1000);
    values[500] = 1e30;
    const scale = fitScale(values, "linear")!;
    expect(scale.high).toBeLessThan(2);
    expect(scale.isCutHigh).toBe(true);
    expect(paletteIndex(scale, 1e30)).toBe(255);
  });

  it("has no scale without a finite number", () => {
    expect(fitScale(new Float32Array([Number.NaN]), "linear")).toBeNull();
  });

  it("has a colour for runs in which nothing ever changes", () => {
    const scale = fitScale(new Float32Array([5, 5]), "linear")!;
    expect(position(scale, 5)).toBe(0.5);
    expect(position(fitScale(new Float32Array([5, 5]), "log")!, 5)).toBe(0);
  });
});
