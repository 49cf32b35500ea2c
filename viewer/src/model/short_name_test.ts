import { describe, expect, it } from "vitest";
import { shortNames } from "./short_name";

describe("shortNames", () => {
  it("leaves out what all names share", () => {
    expect(shortNames(["gradient/a.query.weight", "gradient/b.key.weight", "gradient/head.weight"])).toEqual([
      "a.query",
      "b.key",
      "head",
    ]);
  });

  it("always leaves something", () => {
    expect(shortNames(["a.weight"])).toEqual(["weight"]);
    expect(shortNames(["a.b", "a.b"])).toEqual(["b", "b"]);
    expect(shortNames(["x", "y"])).toEqual(["x", "y"]);
    expect(shortNames([])).toEqual([]);
  });
});
