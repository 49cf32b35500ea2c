// A block made ready for painting: rows as they are on the screen, a colour for each cell.

import type { HeatmapBlock } from "../api/heatmap_block";
import { ALARM, type Palette, pack } from "../model/colour_map";
import { type ColourScale, paletteIndex } from "../model/colour_scale";
import { coarser, type Level } from "../model/pyramid";
import type { RowLayout } from "../model/row_layout";
import { lastAtMost } from "../model/step_axis";
import type { Channel } from "../state/place";

export interface Layer {
  block: HeatmapBlock;
  level: Level;
  // By row on the screen: the level's row, or -1 where the layer has none.
  levelRow: Int32Array;
  // Packed colours by cell; 0 where nothing was recorded.
  colours: Uint32Array;
}

export interface Cell {
  mean: number;
  min: number;
  max: number;
  nonfinite: number;
  firstStep: number;
  lastStep: number;
  // Positions [first, end) of the tensors that it is about.
  first: number;
  end: number;
}

export interface Colouring {
  scale: ColourScale;
  palette: Palette;
  channel: Channel;
}

const ALARM_COLOUR = pack(ALARM);

// `offset` is the position of the block's first tensor. No more than `most` rows are made.
export function makeLayer(
  block: HeatmapBlock,
  offset: number,
  layout: RowLayout,
  most: number,
  colouring: Colouring,
): Layer {
  const { bounds, levelRow } = arrange(block, offset, layout, most);
  const level: Level = bounds.length - 1 === block.rows ? block : coarser(block, bounds);
  return { block, level, levelRow, colours: colour(level, colouring) };
}

// Which rows of the block are put together, and which rows of the screen they fill.
function arrange(block: HeatmapBlock, offset: number, layout: RowLayout, most: number) {
  const rowOf = (position: number) =>
    layout.rowOfPosition[Math.min(position, layout.tensors.length - 1)] ?? 0;
  const first = rowOf(offset);
  const spread = Math.max(1, Math.ceil((rowOf(offset + block.ids.length - 1) + 1 - first) / most));
  const bounds: number[] = [];
  const levelRow = new Int32Array(layout.rows.length).fill(-1);
  let group = -1;
  for (let r = 0; r < block.rows; r++) {
    const from = rowOf(offset + block.rowBounds[r]!);
    const to = rowOf(offset + block.rowBounds[r + 1]! - 1);
    const wanted = Math.floor((from - first) / spread);
    if (wanted !== group) bounds.push(r);
    group = wanted;
    levelRow.fill(bounds.length - 1, from, to + 1);
  }
  bounds.push(block.rows);
  return { bounds, levelRow };
}

function colour(level: Level, { scale, palette, channel }: Colouring): Uint32Array {
  const values = level[channel];
  const colours = new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    if (level.nonfinite[i]! > 0) colours[i] = ALARM_COLOUR;
    else {
      const value = values[i]!;
      if (!Number.isNaN(value)) colours[i] = palette[paletteIndex(scale, value)]!;
    }
  }
  return colours;
}

// The cell at a row of the screen and a step; null where the layer has nothing to say.
export function cellAt(layer: Layer, layout: RowLayout, row: number, step: number): Cell | null {
  const { block, level } = layer;
  const r = layer.levelRow[row] ?? -1;
  const column = lastAtMost(block.firstSteps, step);
  if (r < 0 || column < 0 || step > block.lastSteps.at(-1)!) return null;
  const at = r * level.columns + column;
  const rows = layer.levelRow;
  let top = row;
  let bottom = row;
  while (top > 0 && rows[top - 1] === r) top -= 1;
  while (bottom + 1 < rows.length && rows[bottom + 1] === r) bottom += 1;
  return {
    mean: level.mean[at]!,
    min: level.min[at]!,
    max: level.max[at]!,
    nonfinite: level.nonfinite[at]!,
    firstStep: block.firstSteps[column]!,
    lastStep: block.lastSteps[column]!,
    first: layout.rows[top]!.first,
    end: layout.rows[bottom]!.end,
  };
}
