import { describe, expect, it } from "vitest";
import { address, runPath } from "./address";

describe("address", () => {
  it("sorts parameters and leaves out what is missing or has its default", () => {
    expect(
      address("/api/runs/a/heatmap", {
        statistic: "l2",
        rows: 400,
        role: "gradient",
        columns: 400,
        channels: "mean,min,max",
        mode: "GLOBAL",
        first: 0,
        worker: null,
      }),
    ).toBe("/api/runs/a/heatmap?channels=mean%2Cmin%2Cmax&columns=400&role=gradient&rows=400&statistic=l2");
  });

  it("repeats lists, sorted by value", () => {
    expect(address("/x", { worker: ["w2", "w1"] })).toBe("/x?worker=w1&worker=w2");
  });

  it("keeps zero where it is not the default", () => {
    expect(address("/x", { id: 0, from: 0 })).toBe("/x?from=0&id=0");
  });

  it("encodes what would break a URL", () => {
    expect(address("/x", { tensor: "a&b=<é>" })).toBe("/x?tensor=a%26b%3D%3C%C3%A9%3E");
    expect(runPath("my run", "findings")).toBe("/api/runs/my%20run/findings");
  });
});
