// A coarser level of a heat map: neighbouring rows put together into one, as the server does it,
// for collapsed modules and for more rows than the screen has.

import type { HeatmapBlock } from "../api/heatmap_block";

export interface Level {
  rows: number;
  columns: number;
  mean: Float32Array;
  min: Float32Array;
  max: Float32Array;
  nonfinite: Uint32Array | Uint16Array;
}

// Row g of the result is about the block's rows bounds[g] to bounds[g + 1] - 1. Means are weighted by tensors.
export function coarser(block: HeatmapBlock, bounds: readonly number[]): Level {
  const { columns, rowBounds } = block;
  const rows = bounds.length - 1;
  const level = {
    rows,
    columns,
    mean: new Float32Array(rows * columns),
    min: new Float32Array(rows * columns).fill(Number.NaN),
    max: new Float32Array(rows * columns).fill(Number.NaN),
    nonfinite: new Uint32Array(rows * columns),
  };
  const weights = new Float64Array(columns);
  const sums = new Float64Array(columns);
  for (let g = 0; g < rows; g++) {
    weights.fill(0);
    sums.fill(0);
    const out = g * columns;
    for (let r = bounds[g]!; r < bounds[g + 1]!; r++) {
      const weight = rowBounds[r + 1]! - rowBounds[r]!;
      for (let c = 0; c < columns; c++) {
        const at = r * columns + c;
        level.nonfinite[out + c]! += block.nonfinite[at]!;
        const mean = block.mean[at]!;
        if (Number.isNaN(mean)) continue;
        weights[c]! += weight;
        sums[c]! += weight * mean;
        if (!(level.min[out + c]! <= block.min[at]!)) level.min[out + c] = block.min[at]!;
        if (!(level.max[out + c]! >= block.max[at]!)) level.max[out + c] = block.max[at]!;
      }
    }
    for (let c = 0; c < columns; c++) {
      level.mean[out + c] = weights[c] === 0 ? Number.NaN : sums[c]! / weights[c]!;
    }
  }
  return level;
}
