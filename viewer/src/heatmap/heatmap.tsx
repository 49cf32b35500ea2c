// One statistic of many tensors over the steps, as colours. Drag to zoom, shift-drag or scroll to pan,
// arrow keys to go from cell to cell.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Catalogue, Tensor } from "../api/types";
import { diverging, sequential } from "../model/colour_map";
import { fitScale, type ScaleKind } from "../model/colour_scale";
import { toggled } from "../model/row_layout";
import { isWhole, type ViewWindow } from "../model/view_window";
import { Empty, Trouble } from "../parts/empty";
import { useSize } from "../parts/size";
import type { Channel } from "../state/place";
import { theme } from "../state/theme";
import { HeatmapActions } from "./actions";
import { Canvas } from "./canvas";
import { type HeatmapQuestion, useHeatmapData } from "./heatmap_data";
import { useKeys } from "./keys";
import { cellAt, makeLayer } from "./layer";
import { Legend } from "./legend";
import { type Mark, placeMarks } from "./mark";
import { usePointer } from "./pointer";
import { cellLabel, type Reading, Readout, readingText } from "./readout";
import { RowLabels } from "./row_labels";
import { type StepFlag, StepFlags } from "./step_flags";
import { StepTicks } from "./step_ticks";
import { useViewWindow, type ViewPart } from "./zoom";

export interface HeatmapProps {
  // The name for screen readers and files.
  label: string;
  question: HeatmapQuestion | null;
  catalogue: Catalogue | null;
  collapsed: readonly string[];
  onCollapse(paths: string[]): void;
  part: ViewPart;
  onPart(part: ViewPart): void;
  marks: readonly Mark[];
  flags: readonly StepFlag[];
  scale: ScaleKind;
  channel: Channel;
  // What the colours stand for.
  unit: string;
  // A sentence for when there is nothing to show.
  empty: string;
  most: number;
  onOpen(tensor: Tensor, step: number): void;
}

const ROW_HEIGHT = 16;
const LEAST_HEIGHT = 150;
const NARROW = 420;

export function Heatmap(props: HeatmapProps) {
  const { catalogue, part } = props;
  const [plot, width] = useSize();
  const screen = { width, height: props.most };
  const [asked, setAsked] = useState<ViewWindow | null>(null);
  const data = useHeatmapData(props.question, catalogue, props.collapsed, screen, asked);
  const { base, layout, axis } = data;
  const extent = { columns: axis.columns, rows: layout?.rows.length ?? 0 };
  const [window, setWindow] = useViewWindow(part, props.onPart, layout, axis);
  if (asked !== window) setAsked(window);

  const height = Math.min(props.most, Math.max(LEAST_HEIGHT, extent.rows * ROW_HEIGHT));
  const scale = useMemo(
    () => base && fitScale(base[props.channel], props.scale),
    [base, props.channel, props.scale],
  );
  const palette = scale?.kind === "around_zero" ? diverging[theme.value] : sequential;
  const layers = useMemo(() => {
    if (!base || !layout || !scale) return [];
    const colouring = { scale, palette, channel: props.channel };
    const most = height * devicePixelRatio;
    const made = [makeLayer(base, 0, layout, most, colouring)];
    if (data.detail) made.push(makeLayer(data.detail.block, data.detail.offset, layout, 2 * most, colouring));
    return made;
  }, [base, data.detail, layout, scale, palette, props.channel, height]);
  const marks = useMemo(
    () => (layout ? placeMarks(props.marks, layout, axis) : []),
    [props.marks, layout, axis],
  );

  const read = (row: number, x: number): Reading | null => {
    if (!layout || !catalogue || row < 0 || row >= layout.rows.length) return null;
    const step = axis.stepAt(x);
    const cell = layers.reduceRight<ReturnType<typeof cellAt>>(
      (found, layer) => found ?? cellAt(layer, layout, row, step),
      null,
    );
    if (!cell) return null;
    const here = marks.filter(
      (mark) => mark.step >= cell.firstStep && mark.step <= cell.lastStep && sameCell(mark.row, row, cell),
    );
    return {
      cell,
      label: cellLabel(cell, layout, catalogue.modules, row),
      marks: [...new Set(here.map((mark) => mark.text))].slice(0, 4),
    };
  };
  const sameCell = (markRow: number, row: number, cell: { first: number; end: number }) =>
    markRow === row || (layout!.rows[markRow]!.first >= cell.first && layout!.rows[markRow]!.end <= cell.end);

  // A tensor is opened, a collapsed module too; where a row stands for several tensors, these are shown larger.
  const open = (row: number, x: number) => {
    const reading = read(row, x);
    if (!layout || !reading) return;
    const { cell } = reading;
    if (layout.rows[row]!.module !== null) toggle(catalogue!.modules[layout.rows[row]!.module!]!.path);
    else if (cell.end - cell.first === 1) props.onOpen(layout.tensors[cell.first]!, cell.firstStep);
    else
      setWindow({
        ...window,
        y0: layout.rowOfPosition[cell.first]!,
        y1: layout.rowOfPosition[cell.end - 1]! + 1,
      });
  };
  const toggle = (path: string) => props.onCollapse(toggled(props.collapsed, path, catalogue?.modules ?? []));

  const stage = useRef<HTMLDivElement>(null);
  const pointer = usePointer({ stage, window, setWindow, extent, size: { width, height }, open });
  const keys = useKeys({
    window,
    setWindow,
    extent,
    height,
    open,
    toggle,
    layout,
    modules: catalogue?.modules ?? [],
  });
  const at = pointer.hover ?? null;
  const hovered = at && read(Math.floor(at.row), at.x);
  const spoken = keys.cursor && read(keys.cursor.row, keys.cursor.x);
  const wide = width / (window.x1 - window.x0);
  const tall = height / (window.y1 - window.y0);

  if (data.problem && !base) return <Trouble problem={data.problem} />;
  const isEmpty = base !== null && (base.rows === 0 || base.columns === 0);
  return (
    <section class="heatmap" aria-label={props.label}>
      {isEmpty && <Empty title="Nothing to show here.">{props.empty}</Empty>}
      <div class="heatmap-body" hidden={isEmpty}>
        {layout && catalogue ? (
          <RowLabels
            layout={layout}
            modules={catalogue.modules}
            window={window}
            height={height}
            isNarrow={width < NARROW}
            cursorRow={at ? Math.floor(at.row) : (keys.cursor?.row ?? null)}
            onToggle={toggle}
            onOpen={(row) => open(row, axis.columns - 1)}
          />
        ) : (
          <div class="row-labels" style={{ height }} />
        )}
        <div class="heatmap-plot" ref={plot}>
          <div
            ref={stage}
            class="heatmap-stage"
            style={{ height }}
            role="application"
            aria-roledescription="heat map"
            // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys go from cell to cell
            tabIndex={0}
            aria-label={`${props.label}. Arrow keys go from cell to cell, Enter opens, plus and minus zoom, 0 shows all, C collapses the module.`}
            {...pointer.handlers}
            {...keys.handlers}
          >
            {base ? (
              <Canvas
                layers={layers}
                marks={marks}
                window={window}
                axis={axis}
                layout={layout}
                size={{ width, height }}
              />
            ) : (
              <div class="heatmap-wait" role="status">
                Reading…
              </div>
            )}
            {pointer.brush && <div class="brush" style={pointer.brush} />}
            {keys.cursor && (
              <div
                class="cell-cursor"
                style={{
                  left: (Math.floor(keys.cursor.x) - window.x0) * wide - 1,
                  top: (keys.cursor.row - window.y0) * tall - 1,
                  width: Math.max(5, wide) + 2,
                  height: Math.max(5, tall) + 2,
                }}
              />
            )}
            {hovered && at && <Readout reading={hovered} x={at.left} y={at.top} width={width} />}
            {!hovered && spoken && keys.cursor && (
              <Readout
                reading={spoken}
                x={(keys.cursor.x - window.x0) * wide}
                y={(keys.cursor.row - window.y0) * tall}
                width={width}
              />
            )}
          </div>
          {props.flags.length > 0 && (
            <StepFlags flags={props.flags} axis={axis} window={window} width={width} />
          )}
          <StepTicks axis={axis} window={window} width={width} />
        </div>
      </div>
      <div class="visually-hidden" aria-live="polite">
        {spoken ? readingText(spoken) : ""}
      </div>
      {scale && layout && base && !isEmpty && (
        <footer class="heatmap-foot">
          <Legend scale={scale} palette={palette} label={props.unit} />
          <HeatmapActions
            label={props.label}
            layout={layout}
            modules={catalogue?.modules ?? []}
            axis={axis}
            window={window}
            layers={layers}
            marks={marks}
            scale={scale}
            palette={palette}
            unit={props.unit}
            isZoomed={!isWhole(window, extent)}
            onReset={() => props.onPart({ from: null, to: null, first: null, count: null })}
            collapsed={props.collapsed}
            onCollapse={props.onCollapse}
          />
        </footer>
      )}
    </section>
  );
}
