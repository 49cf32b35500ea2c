// Columns of a heat map in which something was recorded. Runs save weights in training and nothing of them in
// evaluation; steps at which no tensor of the choice was saved would only be gaps.

import type { HeatmapBlock } from "../api/heatmap_block";

export function withoutEmptyColumns(block: HeatmapBlock): HeatmapBlock {
  const kept = recordedColumns(block);
  if (kept.length === block.columns || kept.length === 0) return block;
  const float = (values: Float32Array) =>
    gathered(values, block, kept, new Float32Array(block.rows * kept.length));
  const mean = float(block.mean);
  return {
    ...block,
    columns: kept.length,
    firstSteps: kept.map((column) => block.firstSteps[column]!),
    lastSteps: kept.map((column) => block.lastSteps[column]!),
    mean,
    min: block.min === block.mean ? mean : float(block.min),
    max: block.max === block.mean ? mean : float(block.max),
    nonfinite: gathered(block.nonfinite, block, kept, new Uint16Array(block.rows * kept.length)),
  };
}

function recordedColumns({ rows, columns, mean, nonfinite }: HeatmapBlock): number[] {
  const isRecorded = new Uint8Array(columns);
  let missing = columns;
  for (let r = 0; r < rows && missing > 0; r++) {
    for (let c = 0; c < columns; c++) {
      const at = r * columns + c;
      if (isRecorded[c] === 1 || (Number.isNaN(mean[at]!) && nonfinite[at] === 0)) continue;
      isRecorded[c] = 1;
      missing -= 1;
    }
  }
  return Array.from({ length: columns }, (_, c) => c).filter((c) => isRecorded[c] === 1);
}

function gathered<T extends Float32Array | Uint16Array>(
  from: T,
  block: HeatmapBlock,
  kept: readonly number[],
  into: T,
): T {
  for (let r = 0; r < block.rows; r++) {
    for (const [c, column] of kept.entries()) into[r * kept.length + c] = from[r * block.columns + column]!;
  }
  return into;
}
