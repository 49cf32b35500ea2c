import { describe, expect, it } from "vitest";
import { ALARM, diverging, lightness, type Palette, sequential, unpack } from "./colour_map";

const rises = (palette: Palette) => [...palette].map((colour) => lightness(unpack(colour)));

describe("colour maps", () => {
  it("gets lighter all the way, so that it reads in grey and with every colour vision", () => {
    const values = rises(sequential);
    for (let i = 8; i < values.length; i += 8) expect(values[i]! - values[i - 8]!).toBeGreaterThan(0.005);
    expect(values.at(-1)! - values[0]!).toBeGreaterThan(0.6);
  });

  it.each(["light", "dark"] as const)("has its quietest colour in the middle (%s)", (theme) => {
    const values = rises(diverging[theme]);
    const sign = theme === "light" ? 1 : -1;
    for (let i = 8; i < 128; i += 8) {
      expect(sign * (values[i]! - values[i - 8]!)).toBeGreaterThan(0);
      expect(sign * (values[255 - i]! - values[255 - i + 8]!)).toBeGreaterThan(0);
    }
  });

  it("shows the two directions of a difference in blue and orange", () => {
    const [red, , blue] = unpack(diverging.light[40]!);
    expect(blue).toBeGreaterThan(red);
    const [otherRed, , otherBlue] = unpack(diverging.light[215]!);
    expect(otherRed).toBeGreaterThan(otherBlue);
  });

  it("keeps the colour of what is not finite away from the map", () => {
    for (const colour of sequential) {
      const distance = Math.hypot(...unpack(colour).map((c, i) => c - ALARM[i]!));
      expect(distance).toBeGreaterThan(60);
    }
  });
});
