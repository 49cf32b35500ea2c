// One statistic, tensors × steps, read from the binary that docs/reference/http.md describes.
// Arrays are views of the answer's bytes where its order of bytes allows it, and are never changed.

export interface HeatmapBlock {
  rows: number;
  columns: number;
  isTensorPerRow: boolean;
  isStepPerColumn: boolean;
  catalogue: number;
  // Tensors of the whole choice, of which this block may hold a part.
  choiceCount: number;
  stepCount: number;
  ids: Uint32Array;
  // Row r is about ids[rowBounds[r]] to ids[rowBounds[r + 1] - 1].
  rowBounds: Uint32Array;
  firstSteps: number[];
  lastSteps: number[];
  mean: Float32Array;
  min: Float32Array;
  max: Float32Array;
  nonfinite: Uint16Array;
}

const HEAD_BYTES = 64;
const CHANNEL = { mean: 1, min: 2, max: 4 } as const;
const FLAG = { tensorPerRow: 1, stepPerColumn: 2 } as const;

export function parseHeatmapBlock(bytes: ArrayBuffer): HeatmapBlock {
  if (bytes.byteLength < HEAD_BYTES) throw new Error(`The heat map has only ${bytes.byteLength} bytes.`);
  const head = new DataView(bytes);
  const magic = String.fromCharCode(...new Uint8Array(bytes, 0, 4));
  if (magic !== "SMDH") throw new Error(`This is no heat map: it begins with '${magic}'.`);
  const version = head.getUint16(4, true);
  if (version !== 1) {
    throw new Error(`The heat map has version ${version}; this page reads version 1. Reload the page.`);
  }
  const rows = head.getUint32(8, true);
  const columns = head.getUint32(12, true);
  const channels = head.getUint32(16, true);
  const flags = head.getUint32(20, true);
  const tensors = head.getUint32(32, true);
  const cells = rows * columns;

  let at = head.getUint16(6, true);
  const part = (size: number): number => {
    const start = at;
    at = Math.ceil((start + size) / 8) * 8;
    if (start + size > bytes.byteLength) {
      throw new Error(`The heat map ends at byte ${bytes.byteLength}, but ${start + size} were announced.`);
    }
    return start;
  };
  const steps = (start: number) => Array.from(new BigInt64Array(bytes, start, columns), Number);
  const channel = (flag: number) =>
    channels & flag ? new Float32Array(bytes, part(cells * 4), cells) : null;

  const ids = new Uint32Array(bytes, part(tensors * 4), tensors);
  const rowBounds = new Uint32Array(bytes, part((rows + 1) * 4), rows + 1);
  const firstSteps = steps(part(columns * 8));
  const lastSteps = steps(part(columns * 8));
  const mean = channel(CHANNEL.mean);
  const min = channel(CHANNEL.min);
  const max = channel(CHANNEL.max);
  const nonfinite = new Uint16Array(bytes, part(cells * 2), cells);
  const some = mean ?? max ?? min;
  if (some === null) throw new Error("The heat map has no channel.");
  return {
    rows,
    columns,
    isTensorPerRow: (flags & FLAG.tensorPerRow) !== 0,
    isStepPerColumn: (flags & FLAG.stepPerColumn) !== 0,
    catalogue: head.getUint32(44, true),
    choiceCount: head.getUint32(36, true),
    stepCount: head.getUint32(40, true),
    ids,
    rowBounds,
    firstSteps,
    lastSteps,
    mean: mean ?? some,
    min: min ?? some,
    max: max ?? some,
    nonfinite,
  };
}
