import { describe, expect, it } from "vitest";
import { wholeTicks } from "./ticks";

describe("wholeTicks", () => {
  it("chooses round numbers inside", () => {
    expect(wholeTicks(0, 1000, 6)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(wholeTicks(3, 9, 10)).toEqual([3, 4, 5, 6, 7, 8, 9]);
    expect(wholeTicks(123_456, 987_654, 5)).toEqual([200_000, 400_000, 600_000, 800_000]);
  });

  it("has nothing to show without a range", () => {
    expect(wholeTicks(5, 4, 5)).toEqual([]);
    expect(wholeTicks(Number.NaN, 4, 5)).toEqual([]);
  });
});
