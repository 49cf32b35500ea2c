import { describe, expect, it } from "vitest";
import { formatBytes, formatDuration, formatNumber, formatPair, formatTicks, plural } from "./number";

describe("formatNumber", () => {
  it("keeps four digits, and powers of ten for the very small and large", () => {
    expect(formatNumber(0.123456)).toBe("0.1235");
    expect(formatNumber(1234)).toBe("1,234");
    expect(formatNumber(-0.00001234)).toBe("\u22121.23e\u22125");
    expect(formatNumber(3.4e38)).toBe("3.40e38");
    expect(formatNumber(0)).toBe("0");
  });

  it("names what is no finite number", () => {
    expect(formatNumber(Number.NaN)).toBe("NaN");
    expect(formatNumber("-Infinity")).toBe("\u2212∞");
    expect(formatNumber(Number.POSITIVE_INFINITY)).toBe("∞");
    expect(formatNumber(null)).toBe("–");
  });
});

describe("formatPair", () => {
  it("shows the digit in which two numbers differ", () => {
    expect(formatPair(19.68123, 19.68125)).toEqual(["19.68123", "19.68125"]);
    expect(formatPair(1, 2)).toEqual(["1", "2"]);
    expect(formatPair("NaN", 2)).toEqual(["NaN", "2"]);
    expect(formatPair(5, 5)).toEqual(["5", "5"]);
  });
});

describe("units", () => {
  it("chooses a unit that fits", () => {
    expect(formatBytes(999)).toBe("999 B");
    expect(formatBytes(1_500_000)).toBe("1.5 MB");
    expect(formatDuration(0.0304)).toBe("30 ms");
    expect(formatDuration(3725)).toBe("1 h 2 min");
    expect(plural(1, "step")).toBe("1 step");
    expect(plural(12000, "tensor")).toBe("12,000 tensors");
  });
});

describe("formatTicks", () => {
  it("tells neighbours apart", () => {
    expect(formatTicks([1.0035, 1.004, 1.0045])).toEqual(["1.0035", "1.004", "1.0045"]);
    expect(formatTicks([-0.5, 0, 0.5])).toEqual(["\u22120.5", "0", "0.5"]);
  });
});
