import { describe, expect, it } from "vitest";
import { formatPlace, parsePlace } from "./place";

describe("place", () => {
  it("survives the way into the address and back", () => {
    const place = {
      ...parsePlace(""),
      view: "tensor" as const,
      run: "a-1",
      tensor: "fc <b>&=?#ü\u{1f600}",
      step: 0,
      collapsed: ["layer.1", "a b"],
      smooth: 0.6,
      log: true,
      slice: "0,:,3",
    };
    expect(parsePlace(formatPlace(place))).toEqual(place);
  });

  it("has a short address when everything is as usual", () => {
    expect(formatPlace(parsePlace(""))).toBe("#overview");
    expect(formatPlace({ ...parsePlace(""), statistic: "l2" })).toBe("#overview?statistic=l2");
  });

  it("takes what it does not understand as not given", () => {
    const place = parsePlace("#nowhere?from=-3&to=x&scale=purple&smooth=7&mode=DREAM&what=1");
    expect(place).toMatchObject({ view: "overview", from: null, to: null, scale: "auto", mode: "GLOBAL" });
    expect(place.smooth).toBe(0.99);
  });

  it("keeps question marks inside of parameters", () => {
    expect(parsePlace("#tensor?tensor=a?b").tensor).toBe("a?b");
  });
});
