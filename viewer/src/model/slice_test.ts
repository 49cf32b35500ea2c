import { describe, expect, it } from "vitest";
import { askedSlice, formatSlice, parseSlice, takeSlice } from "./slice";

const SHAPE = [2, 3, 4];
const VALUES = Array.from({ length: 24 }, (_, i) => i);

describe("slice", () => {
  it("shows the last two dimensions unless told otherwise", () => {
    expect(formatSlice(parseSlice("", SHAPE))).toBe("0,:,:");
    expect(formatSlice(parseSlice("", [5]))).toBe(":");
    expect(formatSlice(parseSlice("", []))).toBe("");
  });

  it("shows any two dimensions", () => {
    const choice = parseSlice(":,1,:", SHAPE);
    expect(takeSlice(VALUES, SHAPE, choice)).toEqual([
      [4, 5, 6, 7],
      [16, 17, 18, 19],
    ]);
    expect(takeSlice(VALUES, SHAPE, parseSlice("1,:,2", SHAPE))).toEqual([[14, 18, 22]]);
    expect(takeSlice([42], [], parseSlice("", []))).toEqual([[42]]);
  });

  it("takes what does not fit the shape as index 0", () => {
    expect(formatSlice(parseSlice("9,:,:", SHAPE))).toBe("0,:,:");
    expect(formatSlice(parseSlice("x,-1,:", SHAPE))).toBe("0,0,:");
    expect(formatSlice(parseSlice(":,:,:", SHAPE))).toBe("0,:,:");
    expect(formatSlice(parseSlice("1,1,1", SHAPE))).toBe("1,1,:");
  });

  it("asks for no more than can be shown", () => {
    expect(askedSlice(parseSlice("", [50_000, 64]), [50_000, 64])).toBe("0:512,:");
  });
});
