import { describe, expect, it } from "vitest";
import { parseHeatmapBlock } from "./heatmap_block";

interface Parts {
  ids: number[];
  bounds: number[];
  first: number[];
  last: number[];
  channels: number;
  planes: number[][];
  nonfinite: number[];
}

const SMALL: Parts = {
  ids: [7, 9, 4],
  bounds: [0, 2, 3],
  first: [0, 10, 2 ** 40],
  last: [5, 15, 2 ** 40],
  channels: 5,
  planes: [
    [1, 2, 3, 4, Number.NaN, 6],
    [10, 20, 30, 40, Number.NaN, 60],
  ],
  nonfinite: [0, 0, 0, 0, 65535, 1],
};

// Written from the tables of docs/reference/http.md, by hand.
function block(parts: Parts, headBytes = 64): ArrayBuffer {
  const rows = parts.bounds.length - 1;
  const columns = parts.first.length;
  const bytes: number[] = new Array(headBytes).fill(0);
  const put = (view: ArrayBufferView) => {
    bytes.push(...new Uint8Array(view.buffer));
    while (bytes.length % 8 !== 0) bytes.push(0);
  };
  put(new Uint32Array(parts.ids));
  put(new Uint32Array(parts.bounds));
  put(new BigInt64Array(parts.first.map(BigInt)));
  put(new BigInt64Array(parts.last.map(BigInt)));
  for (const plane of parts.planes) put(new Float32Array(plane));
  put(new Uint16Array(parts.nonfinite));
  const buffer = new Uint8Array(bytes).buffer;
  const head = new DataView(buffer);
  for (const [i, c] of [..."SMDH"].entries()) head.setUint8(i, c.charCodeAt(0));
  head.setUint16(4, 1, true);
  head.setUint16(6, headBytes, true);
  head.setUint32(8, rows, true);
  head.setUint32(12, columns, true);
  head.setUint32(16, parts.channels, true);
  head.setUint32(20, 2, true);
  head.setUint32(32, parts.ids.length, true);
  head.setUint32(36, 100, true);
  head.setUint32(40, 33, true);
  head.setUint32(44, 8, true);
  return buffer;
}

describe("parseHeatmapBlock", () => {
  it("reads every part at its place", () => {
    const read = parseHeatmapBlock(block(SMALL));
    expect([...read.ids]).toEqual([7, 9, 4]);
    expect([...read.rowBounds]).toEqual([0, 2, 3]);
    expect(read.firstSteps).toEqual([0, 10, 2 ** 40]);
    expect(read.lastSteps).toEqual([5, 15, 2 ** 40]);
    expect([...read.mean]).toEqual(SMALL.planes[0]);
    expect([...read.max]).toEqual(SMALL.planes[1]);
    expect([...read.nonfinite]).toEqual(SMALL.nonfinite);
    expect(read).toMatchObject({ rows: 2, columns: 3, choiceCount: 100, stepCount: 33, catalogue: 8 });
    expect(read).toMatchObject({ isTensorPerRow: false, isStepPerColumn: true });
  });

  it("reads on behind a longer head of a later minor version", () => {
    expect([...parseHeatmapBlock(block(SMALL, 72)).ids]).toEqual([7, 9, 4]);
  });

  it("reads a block without tensors", () => {
    const empty = { ids: [], bounds: [0], first: [], last: [], channels: 1, planes: [[]], nonfinite: [] };
    expect(parseHeatmapBlock(block(empty))).toMatchObject({ rows: 0, columns: 0 });
  });

  it("takes a channel that was not asked for from one that was", () => {
    const read = parseHeatmapBlock(block(SMALL));
    expect([...read.min]).toEqual(SMALL.planes[0]);
  });

  it("says what is wrong with other bytes", () => {
    expect(() => parseHeatmapBlock(new ArrayBuffer(8))).toThrow("only 8 bytes");
    expect(() => parseHeatmapBlock(new ArrayBuffer(64))).toThrow("no heat map");
    const newer = block(SMALL);
    new DataView(newer).setUint16(4, 2, true);
    expect(() => parseHeatmapBlock(newer)).toThrow("version 2");
    const cut = block(SMALL);
    expect(() => parseHeatmapBlock(cut.slice(0, cut.byteLength - 16))).toThrow("were announced");
  });
});
