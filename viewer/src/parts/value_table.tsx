// Elements as a table. Only the cells that are on the screen exist.

import { useState } from "preact/hooks";
import type { Element } from "../api/types";
import { formatNumber } from "../model/number";

const CELL = { width: 82, height: 22 };
const VIEW = { rows: 18, columns: 24 };
const HEAD = 48;

export function ValueTable({ rows }: { rows: readonly (readonly Element[])[] }) {
  const [at, setAt] = useState({ row: 0, column: 0 });
  const columns = rows[0]?.length ?? 0;
  const firstRow = Math.min(at.row, Math.max(0, rows.length - VIEW.rows));
  const firstColumn = Math.min(at.column, Math.max(0, columns - VIEW.columns));
  const shownRows = range(firstRow, Math.min(rows.length, firstRow + VIEW.rows));
  const shownColumns = range(firstColumn, Math.min(columns, firstColumn + VIEW.columns));
  const height = Math.min(rows.length + 1, VIEW.rows - 1) * CELL.height + 2;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must be reachable by keyboard
    <div
      class="value-table"
      style={{ height }}
      role="region"
      aria-label={`Elements, ${rows.length} rows and ${columns} columns`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollLeft } }) =>
        setAt({ row: Math.floor(scrollTop / CELL.height), column: Math.floor(scrollLeft / CELL.width) })
      }
    >
      <div style={{ width: HEAD + columns * CELL.width, height: (rows.length + 1) * CELL.height }}>
        <table
          style={{
            transform: `translate(${firstColumn * CELL.width}px, ${firstRow * CELL.height}px)`,
            width: HEAD + shownColumns.length * CELL.width,
          }}
        >
          <thead>
            <tr>
              <td />
              {shownColumns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shownRows.map((row) => (
              <tr key={row}>
                <th scope="row">{row}</th>
                {shownColumns.map((column) => {
                  const text = elementText(rows[row]![column] ?? null);
                  return (
                    <td key={column} class={isAlarming(text) ? "alarm" : ""} title={text}>
                      <bdi>{text}</bdi>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

export function elementText(value: Element): string {
  if (Array.isArray(value)) return `${formatNumber(value[0])} + ${formatNumber(value[1])}i`;
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "string" && !isAlarming(value)) return value;
  return formatNumber(value);
}

function isAlarming(text: string): boolean {
  return ["NaN", "Infinity", "-Infinity", "∞", "\u2212∞"].includes(text);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
