// A heat map as rows of a table: the numbers of the whole run, a row for each row of the map.

import type { Module } from "../api/types";
import type { CsvCell } from "../model/csv";
import type { RowLayout } from "../model/row_layout";
import type { Layer } from "./layer";
import { cellLabel } from "./readout";

export function* tableRows(
  layer: Layer,
  layout: RowLayout,
  modules: readonly Module[],
): Generator<CsvCell[]> {
  const { level, block } = layer;
  yield [
    "tensor",
    ...block.firstSteps.map((first, c) =>
      first === block.lastSteps[c] ? first : `${first}..${block.lastSteps[c]}`,
    ),
  ];
  let last = -1;
  for (const [row, at] of layer.levelRow.entries()) {
    if (at < 0 || at === last) continue;
    last = at;
    let end = row;
    while (layer.levelRow[end + 1] === at) end += 1;
    const tensors = { first: layout.rows[row]!.first, end: layout.rows[end]!.end };
    const numbers = level.mean.subarray(at * level.columns, (at + 1) * level.columns);
    yield [
      cellLabel(tensors, layout, modules, row),
      ...Array.from(numbers, (value, c) =>
        Number.isNaN(value) ? (level.nonfinite[at * level.columns + c]! > 0 ? "not finite" : null) : value,
      ),
    ];
  }
}
