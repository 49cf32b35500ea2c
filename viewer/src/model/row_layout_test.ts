import { describe, expect, it } from "vitest";
import type { Catalogue, Tensor } from "../api/types";
import { layoutRows, namedSpans, outline, rowLabel, toggled } from "./row_layout";

const tensor = (id: number, name: string, module: number): Tensor => ({
  id,
  name,
  module,
  role: "weight",
  collections: [],
  dtype: "float32",
  shape: [1],
  statistics: [],
  has_value: false,
  modes: [],
});

// net ─ block.0 (2 tensors), block.1 (2 tensors); head
const CATALOGUE: Catalogue = {
  catalogue: 1,
  collections: [],
  roles: [],
  tensors: [
    tensor(10, "net.block.0.w", 3),
    tensor(11, "net.block.0.b", 3),
    tensor(12, "net.block.1.w", 4),
    tensor(13, "net.block.1.b", 4),
    tensor(14, "head.w", 5),
  ],
  modules: [
    { path: "", name: "", parent: null, first: 0, count: 5 },
    { path: "net", name: "net", parent: 0, first: 0, count: 4 },
    { path: "net.block", name: "block", parent: 1, first: 0, count: 4 },
    { path: "net.block.0", name: "0", parent: 2, first: 0, count: 2 },
    { path: "net.block.1", name: "1", parent: 2, first: 2, count: 2 },
    { path: "head", name: "head", parent: 0, first: 4, count: 1 },
  ],
};
const ALL = [10, 11, 12, 13, 14];

describe("layoutRows", () => {
  it("has a row for each tensor when nothing is collapsed", () => {
    const layout = layoutRows(ALL, CATALOGUE, []);
    expect(layout.rows.map((row) => [row.first, row.end, row.module])).toEqual([
      [0, 1, null],
      [1, 2, null],
      [2, 3, null],
      [3, 4, null],
      [4, 5, null],
    ]);
    expect(layout.isCollapsed).toBe(false);
    expect(rowLabel(layout, CATALOGUE.modules, 2)).toBe("net.block.1.w");
  });

  it("makes one row of a collapsed module, whatever is collapsed inside of it", () => {
    const layout = layoutRows(ALL, CATALOGUE, ["net.block.0", "net"]);
    expect(layout.rows.map((row) => [row.first, row.end])).toEqual([
      [0, 4],
      [4, 5],
    ]);
    expect([...layout.rowOfPosition]).toEqual([0, 0, 0, 0, 1]);
    expect(rowLabel(layout, CATALOGUE.modules, 0)).toBe("net (4)");
  });

  it("joins modules that hold the same rows", () => {
    const { spans } = layoutRows(ALL, CATALOGUE, []);
    expect(spans.map((span) => [span.label, span.start, span.end])).toEqual([
      ["net.block", 0, 4],
      ["head", 4, 5],
    ]);
    expect(spans[0]!.children.map((span) => [span.label, span.start, span.end])).toEqual([
      ["0", 0, 2],
      ["1", 2, 4],
    ]);
  });

  it("leaves out modules without a chosen tensor and copes with ids it does not know", () => {
    const layout = layoutRows([14, 99], CATALOGUE, []);
    expect(layout.spans.map((span) => span.path)).toEqual(["head"]);
    expect(layout.tensors[1]!.name).toBe("tensor 99");
  });

  it("shows a collapsed module as a span that can be opened again", () => {
    const { spans } = layoutRows(ALL, CATALOGUE, ["net.block.0"]);
    expect(spans[0]!.children.map((span) => [span.path, span.isCollapsed, span.end - span.start])).toEqual([
      ["net.block.0", true, 1],
      ["net.block.1", false, 2],
    ]);
  });
});

describe("namedSpans", () => {
  it("goes inwards as long as every name has its place", () => {
    const { spans } = layoutRows(ALL, CATALOGUE, []);
    expect(namedSpans(spans, 2).map((span) => span.path)).toEqual(["net.block.0", "net.block.1"]);
    expect(namedSpans(spans, 2.5).map((span) => span.path)).toEqual(["net.block", "head"]);
  });

  it("names some of very many modules, never too close together", () => {
    const child = (at: number) => ({
      path: `m.${at}`,
      label: `${at}`,
      start: at,
      end: at + 1,
      isCollapsed: false,
      children: [],
    });
    const children = Array.from({ length: 1000 }, (_, at) => child(at));
    const named = namedSpans([{ ...child(0), path: "m", end: 1000, children }], 20);
    expect(named).toHaveLength(25);
    expect(named[1]!.start - named[0]!.start).toBe(40);
  });
});

describe("outline", () => {
  it("collapses the outermost depth that has several modules, in a short form", () => {
    const layout = layoutRows(ALL, CATALOGUE, []);
    expect(outline(layout, CATALOGUE.modules)).toEqual(["*3"]);
    const collapsed = layoutRows(ALL, CATALOGUE, ["*3"]);
    expect(collapsed.rows.map((row) => [row.first, row.end])).toEqual([
      [0, 2],
      [2, 4],
      [4, 5],
    ]);
  });
});

describe("toggled", () => {
  it("opens one of many and collapses it again", () => {
    const opened = toggled(["*3"], "net.block.1", CATALOGUE.modules);
    expect(opened).toEqual(["net.block.0"]);
    expect(toggled(opened, "net.block.1", CATALOGUE.modules)).toEqual(["net.block.0", "net.block.1"]);
    expect(toggled(["head"], "head", CATALOGUE.modules)).toEqual([]);
  });
});
