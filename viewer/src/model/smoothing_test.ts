import { describe, expect, it } from "vitest";
import { smooth } from "./smoothing";

describe("smooth", () => {
  it("begins at the first value and follows slowly", () => {
    const out = smooth([10, 0, 0, 0], 0.5) as number[];
    expect(out[0]).toBe(10);
    expect(out[1]).toBeCloseTo(10 / 3);
    expect(out[3]!).toBeLessThan(out[2]!);
  });

  it("leaves constants, gaps and unsmoothed values as they are", () => {
    expect(smooth([2, null, 2], 0.9)).toEqual([2, null, 2]);
    expect(smooth([1, 5, null], 0)).toEqual([1, 5, null]);
  });
});
