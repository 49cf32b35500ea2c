import { describe, expect, it } from "vitest";
import { clamp, isWhole, pan, whole, zoom } from "./view_window";

const EXTENT = { columns: 100, rows: 50 };

describe("view window", () => {
  it("keeps the point under the pointer in place when zooming", () => {
    const near = zoom(whole(EXTENT), 2, 30, 10, EXTENT);
    expect(near).toEqual({ x0: 15, x1: 65, y0: 5, y1: 30 });
    expect((30 - near.x0) / (near.x1 - near.x0)).toBeCloseTo(0.3);
  });

  it("never leaves the map", () => {
    const near = zoom(whole(EXTENT), 4, 0, 0, EXTENT);
    expect(pan(near, -10, 1000, EXTENT)).toEqual({ x0: 0, x1: 25, y0: 37.5, y1: 50 });
    expect(isWhole(zoom(near, 0.01, 5, 5, EXTENT), EXTENT)).toBe(true);
  });

  it("always shows at least one cell, also of an empty map", () => {
    expect(clamp({ x0: 3, x1: 3, y0: 4, y1: 4 }, EXTENT)).toEqual({ x0: 3, x1: 4, y0: 4, y1: 5 });
    expect(whole({ columns: 0, rows: 0 })).toEqual({ x0: 0, x1: 1, y0: 0, y1: 1 });
  });
});
