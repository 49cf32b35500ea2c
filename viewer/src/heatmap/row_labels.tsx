// Names beside the rows: rails of the modules, which collapse and open them, and as many names as fit.

import { useMemo } from "preact/hooks";
import type { Module } from "../api/types";
import { type ModuleSpan, namedSpans, type RowLayout, rowLabel } from "../model/row_layout";
import { shortNames } from "../model/short_name";
import type { ViewWindow } from "../model/view_window";

interface Props {
  layout: RowLayout;
  modules: readonly Module[];
  window: ViewWindow;
  height: number;
  cursorRow: number | null;
  // Little room: one rail, and names without what all of them share.
  isNarrow: boolean;
  onToggle(path: string): void;
  onOpen(row: number): void;
}

const LINE = 14;
const RAILS = 3;
const RAIL_WIDTH = 15;
const LEAST_RAIL = 3;
const ROTATED_FROM = 46;

export function RowLabels({ layout, modules, window, height, cursorRow, isNarrow, onToggle, onOpen }: Props) {
  const tall = height / (window.y1 - window.y0);
  const top = (row: number) => (row - window.y0) * tall;
  const levels = railLevels(layout.spans, window, isNarrow ? 1 : RAILS);
  const left = levels.length * RAIL_WIDTH + 4;

  const rails = levels.flatMap((spans, level) =>
    spans.map((span) => {
      const from = Math.max(0, top(span.start));
      const to = Math.min(height, top(span.end));
      const verb = span.isCollapsed ? "Open" : "Collapse";
      return (
        to - from >= LEAST_RAIL && (
          <button
            key={span.path}
            type="button"
            class={`rail ${span.isCollapsed ? "rail-collapsed" : ""}`}
            style={{ top: from, height: to - from - 1, left: level * RAIL_WIDTH }}
            title={`${verb} ${span.path}`}
            aria-label={`${verb} module ${span.path}`}
            aria-expanded={!span.isCollapsed}
            onClick={() => onToggle(span.path)}
          >
            {span.isCollapsed && to - from >= 9 ? "▸" : ""}
            {!span.isCollapsed && to - from >= ROTATED_FROM && <span class="rail-name">{span.label}</span>}
          </button>
        )
      );
    }),
  );

  const names = useMemo(
    () => (isNarrow ? shortNames(layout.rows.map((_, row) => rowLabel(layout, modules, row))) : null),
    [layout, isNarrow],
  );
  const labels =
    tall >= LINE - 3
      ? rowsIn(layout, window).map((row) => (
          <button
            key={`r${row}`}
            type="button"
            class={`row-name ${row === cursorRow ? "row-name-here" : ""}`}
            style={{ top: top(row + 0.5) - LINE / 2, left }}
            title={rowLabel(layout, modules, row)}
            aria-label={rowLabel(layout, modules, row)}
            onClick={() => onOpen(row)}
          >
            <bdi>{names ? names[row] : rowLabel(layout, modules, row)}</bdi>
          </button>
        ))
      : namedSpans(layout.spans, LINE / tall).flatMap((span) => {
          const from = Math.max(0, top(span.start));
          const to = Math.min(height, top(span.end));
          if (to < from || (from + to) / 2 < LINE / 2 || (from + to) / 2 > height - LINE / 2) return [];
          return [
            <button
              key={`m${span.path}`}
              type="button"
              class="row-name row-name-module"
              style={{ top: (from + to) / 2 - LINE / 2, left }}
              title={`Collapse ${span.path}`}
              onClick={() => onToggle(span.path)}
            >
              <bdi>{span.path}</bdi>
            </button>,
          ];
        });

  return (
    <div class="row-labels" style={{ height }}>
      {rails}
      {labels}
    </div>
  );
}

// Spans on the screen, by level from outside to inside.
function railLevels(spans: readonly ModuleSpan[], window: ViewWindow, most: number): ModuleSpan[][] {
  const levels: ModuleSpan[][] = [];
  let level = spans.filter((span) => span.end > window.y0 && span.start < window.y1);
  while (level.length > 0 && levels.length < most) {
    levels.push(level);
    level = level.flatMap((span) => span.children).filter((s) => s.end > window.y0 && s.start < window.y1);
  }
  return levels;
}

function rowsIn(layout: RowLayout, window: ViewWindow): number[] {
  const first = Math.max(0, Math.floor(window.y0));
  const end = Math.min(layout.rows.length, Math.ceil(window.y1));
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
}
