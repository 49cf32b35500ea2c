// What can be done with a heat map besides looking: collapse levels, zoom out, save as picture or table.

import type { Module } from "../api/types";
import type { Palette } from "../model/colour_map";
import type { ColourScale } from "../model/colour_scale";
import { csv } from "../model/csv";
import { outline, type RowLayout } from "../model/row_layout";
import type { StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";
import { saveCanvas, saveText } from "../parts/save";
import type { Layer } from "./layer";
import type { PlacedMark } from "./mark";
import { picture } from "./picture";
import { tableRows } from "./table";

export interface ActionProps {
  label: string;
  layout: RowLayout;
  modules: readonly Module[];
  axis: StepAxis;
  window: ViewWindow;
  layers: readonly Layer[];
  marks: readonly PlacedMark[];
  scale: ColourScale;
  palette: Palette;
  unit: string;
  isZoomed: boolean;
  onReset(): void;
  collapsed: readonly string[];
  onCollapse(paths: string[]): void;
}

export function HeatmapActions(props: ActionProps) {
  const { layout, layers } = props;
  const modules = outline(layout, props.modules);
  return (
    <div class="actions">
      <span class="heatmap-hint">drag to zoom · shift-drag or scroll to pan · click to open</span>
      {props.isZoomed && (
        <button type="button" class="button" onClick={props.onReset}>
          Show all
        </button>
      )}
      {props.collapsed.length > 0 && (
        <button type="button" class="button" onClick={() => props.onCollapse([])}>
          Open all modules
        </button>
      )}
      {modules.length > 0 && props.collapsed.length === 0 && (
        <button type="button" class="button" onClick={() => props.onCollapse(modules)}>
          Collapse modules
        </button>
      )}
      <button type="button" class="button" onClick={() => saveCanvas(picture(props), props.label)}>
        PNG
      </button>
      <button
        type="button"
        class="button"
        onClick={() => saveText(csv(tableRows(layers[0]!, layout, props.modules)), props.label, "csv")}
      >
        CSV
      </button>
    </div>
  );
}
