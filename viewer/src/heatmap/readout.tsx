// The numbers of one cell, beside the pointer and for screen readers.

import type { Module } from "../api/types";
import { formatNumber, grouped } from "../model/number";
import { type RowLayout, rowLabel } from "../model/row_layout";
import type { Cell } from "./layer";

export interface Reading {
  cell: Cell;
  label: string;
  marks: string[];
}

export function Readout({ reading, x, y, width }: { reading: Reading; x: number; y: number; width: number }) {
  const { cell, marks } = reading;
  const isOne = cell.end - cell.first === 1 && cell.firstStep === cell.lastStep;
  const side = x > width / 2 ? { right: width - x + 14 } : { left: x + 14 };
  return (
    <div class="readout" style={{ ...side, top: y + 14 }} aria-hidden="true">
      <strong>
        <bdi>{reading.label}</bdi>
      </strong>
      <span class="muted">{stepText(cell)}</span>
      {Number.isNaN(cell.mean) ? (
        <span>{cell.nonfinite > 0 ? "no finite number" : "not recorded"}</span>
      ) : (
        <dl>
          <dt>{isOne ? "value" : "mean"}</dt>
          <dd>{formatNumber(cell.mean)}</dd>
          {!isOne && (
            <>
              <dt>min</dt>
              <dd>{formatNumber(cell.min)}</dd>
              <dt>max</dt>
              <dd>{formatNumber(cell.max)}</dd>
            </>
          )}
        </dl>
      )}
      {cell.nonfinite > 0 && <span class="alarm">{grouped(cell.nonfinite)} not finite</span>}
      {marks.map((mark) => (
        <span key={mark} class="readout-mark">
          {mark}
        </span>
      ))}
    </div>
  );
}

export function readingText({ cell, label, marks }: Reading): string {
  const numbers = Number.isNaN(cell.mean)
    ? cell.nonfinite > 0
      ? "no finite number"
      : "not recorded"
    : `${formatNumber(cell.mean)}${cell.min === cell.max ? "" : `, from ${formatNumber(cell.min)} to ${formatNumber(cell.max)}`}`;
  const alarm = cell.nonfinite > 0 ? `, ${grouped(cell.nonfinite)} not finite` : "";
  return [`${label}, ${stepText(cell)}: ${numbers}${alarm}`, ...marks].join(". ");
}

function stepText(cell: Cell): string {
  return cell.firstStep === cell.lastStep
    ? `step ${grouped(cell.firstStep)}`
    : `steps ${grouped(cell.firstStep)} to ${grouped(cell.lastStep)}`;
}

// What a cell of a row is about, in words.
export function cellLabel(
  cell: Pick<Cell, "first" | "end">,
  layout: RowLayout,
  modules: readonly Module[],
  row: number,
): string {
  const count = cell.end - cell.first;
  const { first, end } = layout.rows[row]!;
  if (first === cell.first && end === cell.end) return rowLabel(layout, modules, row);
  const name = (position: number) => layout.tensors[position]?.name ?? "";
  return `${grouped(count)} tensors: ${name(cell.first)} … ${name(cell.end - 1)}`;
}
