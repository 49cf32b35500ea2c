import { describe, expect, it } from "vitest";
import { StepAxis } from "./step_axis";

describe("StepAxis", () => {
  const axis = new StepAxis([0, 100, 200, 1000], 1000);

  it("gives each column the same width", () => {
    expect(axis.at(100)).toBe(1);
    expect(axis.at(600)).toBe(2.5);
    expect(axis.at(1000)).toBe(3);
    expect(axis.at(1001)).toBe(4);
  });

  it("finds the step of a coordinate", () => {
    expect(axis.stepAt(0)).toBe(0);
    expect(axis.stepAt(2.5)).toBe(600);
    expect(axis.stepAt(3)).toBe(1000);
    for (const step of [0, 57, 100, 999, 1000]) expect(axis.stepAt(axis.at(step))).toBe(step);
  });

  it("stays inside for steps that are not there", () => {
    expect(axis.at(-5)).toBe(0);
    expect(new StepAxis([], 0).at(3)).toBe(0);
  });
});
