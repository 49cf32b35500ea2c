// Lines over steps or time. Several charts with the same `group` share their cursor.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { csv } from "../model/csv";
import { formatNumber, formatTicks, grouped } from "../model/number";
import { saveCanvas, saveText } from "../parts/save";
import { useSize } from "../parts/size";
import { token } from "../parts/token";
import { theme } from "../state/theme";

export interface Line {
  label: string;
  colour: string;
  isDashed: boolean;
  x: number[];
  y: (number | null)[];
  // The numbers as recorded, shown faintly behind a smoothed line.
  raw: (number | null)[] | null;
  // What each point stands for, drawn as a band.
  low: (number | null)[] | null;
  high: (number | null)[] | null;
  // Where numbers were not finite.
  alarms: number[];
}

interface Props {
  title: string;
  lines: readonly Line[];
  xLabel: string;
  formatX?(x: number): string;
  isLog: boolean;
  height: number;
  group: string;
  // A place to mark, if any.
  markX?: number | null;
  onPick?(x: number): void;
}

export function LineChart(props: Props) {
  const { title, lines, height } = props;
  const [box, width] = useSize();
  const chart = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const table = useMemo(() => joined(lines), [lines]);
  const hasPositive = lines.some((line) => line.y.some((y) => y !== null && y > 0));
  const isLog = props.isLog && hasPositive;
  const shape = JSON.stringify([
    lines.map((line) => [line.label, line.colour, line.isDashed, line.raw !== null, line.low !== null]),
    isLog,
    height,
    theme.value,
    props.xLabel,
  ]);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!box.current || width === 0) return;
    const made = new uPlot(options(latest, isLog, width, setCursor), table as uPlot.AlignedData, box.current);
    chart.current = made;
    return () => {
      made.destroy();
      chart.current = null;
    };
  }, [shape, width > 0]);
  useEffect(() => {
    chart.current?.setData(table as uPlot.AlignedData);
  }, [table]);
  useEffect(() => {
    if (width > 0) chart.current?.setSize({ width, height });
  }, [width, height]);
  useEffect(() => {
    chart.current?.redraw(false);
  }, [props.markX]);

  const formatX = props.formatX ?? grouped;
  const at = cursor === null ? null : (table[0]?.[cursor] ?? null);
  const reading = (line: number) => {
    const column = table[columnOf(lines, line)]!;
    return formatNumber(cursor === null ? lastNumber(column) : column[cursor]);
  };
  const alarms = lines.reduce((sum, line) => sum + line.alarms.length, 0);
  const save = () => {
    const picture = pictureOf(chart.current, title);
    if (picture) saveCanvas(picture, title);
  };
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">
          <bdi>{title}</bdi>
        </span>
        <span class="chart-at">{typeof at === "number" ? `${props.xLabel} ${formatX(at)}` : "last"}</span>
        <span class="chart-save">
          <button type="button" class="link" onClick={save} aria-label={`Save ${title} as PNG`}>
            PNG
          </button>
          <button
            type="button"
            class="link"
            onClick={() => saveText(csv(tableOf(props)), title, "csv")}
            aria-label={`Save ${title} as CSV`}
          >
            CSV
          </button>
        </span>
      </figcaption>
      <div
        ref={box}
        class="chart-box"
        style={{ height }}
        role="img"
        aria-label={`${title}: ${lines.map((line, i) => `${line.label} ends at ${reading(i)}`).join(", ")}`}
      />
      <ul class="chart-legend">
        {lines.map((line, i) => (
          <li key={line.label}>
            <i
              class={line.isDashed ? "swatch swatch-dashed" : "swatch"}
              style={{ borderColor: line.colour }}
            />
            <bdi class="chart-name">{line.label}</bdi> <b>{reading(i)}</b>
          </li>
        ))}
        {alarms > 0 && (
          <li class="alarm">not finite at {alarms === 1 ? "one place" : `${grouped(alarms)} places`}</li>
        )}
      </ul>
    </figure>
  );
}

// Columns of uPlot: x, then for each line y, raw, low and high as far as it has them.
function joined(lines: readonly Line[]): (number | null | undefined)[][] {
  if (lines.length === 0) return [[]];
  const tables = lines.map((line) => [line.x, ...columnsOf(line)] as unknown as uPlot.AlignedData);
  return uPlot.join(tables) as unknown as (number | null | undefined)[][];
}

function columnsOf(line: Line): (number | null)[][] {
  return [line.y, ...[line.raw, line.low, line.high].filter((column) => column !== null)];
}

function columnOf(lines: readonly Line[], line: number): number {
  return 1 + lines.slice(0, line).reduce((sum, before) => sum + columnsOf(before).length, 0);
}

function lastNumber(column: (number | null | undefined)[]): number | null {
  return column.findLast((value) => typeof value === "number") ?? null;
}

function options(
  latest: { current: Props },
  isLog: boolean,
  width: number,
  setCursor: (index: number | null) => void,
): uPlot.Options {
  const { lines, height, group } = latest.current;
  const axis: uPlot.Axis = {
    stroke: token("--muted"),
    font: `11px ${token("--sans")}`,
    grid: { stroke: token("--grid"), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const line of lines) {
    const dash = line.isDashed ? { dash: [5, 4] } : {};
    series.push({ stroke: line.colour, width: 1.6, points: { size: 4 }, spanGaps: true, ...dash });
    if (line.raw)
      series.push({ stroke: faint(line.colour, "40"), width: 1, points: { show: false }, spanGaps: true });
    if (line.low && line.high) {
      const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      series.push(edge, { ...edge });
      bands.push({ series: [series.length - 1, series.length - 2], fill: faint(line.colour, "22") });
    }
  }
  return {
    width,
    height,
    series,
    bands,
    legend: { show: false },
    padding: [8, 12, 0, 0],
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      { ...axis, size: 26, values: (_, at) => at.map((x) => latest.current.formatX?.(x) ?? grouped(x)) },
      { ...axis, size: 58, values: (_, at) => tickTexts(at) },
    ],
    cursor: {
      y: false,
      points: { size: 6 },
      sync: { key: group },
      bind: {
        click: (self) => () => {
          const at = self.cursor.idx;
          if (typeof at === "number") latest.current.onPick?.(self.data[0][at]!);
          return null;
        },
      },
    },
    hooks: {
      setCursor: [(self) => setCursor(self.cursor.idx ?? null)],
      draw: [(self) => drawPlaces(self, latest.current)],
    },
  };
}

// A logarithmic axis has lines without numbers.
function tickTexts(at: readonly (number | null)[]): string[] {
  const texts = formatTicks(at.filter((y) => y !== null));
  return at.map((y) => (y === null ? "" : texts.shift()!));
}

// Ticks where numbers were not finite, and a line at the marked place.
function drawPlaces(self: uPlot, { lines, markX }: Props): void {
  const { ctx, bbox } = self;
  ctx.save();
  ctx.fillStyle = token("--error-mark");
  for (const line of lines) {
    for (const at of line.alarms) {
      ctx.fillRect(Math.round(self.valToPos(at, "x", true)) - 1, bbox.top, 2, 9 * devicePixelRatio);
    }
  }
  if (markX !== null && markX !== undefined) {
    ctx.fillStyle = token("--accent");
    ctx.fillRect(Math.round(self.valToPos(markX, "x", true)), bbox.top, devicePixelRatio, bbox.height);
  }
  ctx.restore();
}

function faint(colour: string, alpha: string): string {
  return /^#[0-9a-f]{6}$/i.test(colour) ? colour + alpha : colour;
}

function pictureOf(chart: uPlot | null, title: string): HTMLCanvasElement | null {
  if (!chart) return null;
  const plot = chart.ctx.canvas;
  const ratio = devicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = plot.width;
  canvas.height = plot.height + 30 * ratio;
  const context = canvas.getContext("2d")!;
  context.fillStyle = token("--panel");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(plot, 0, 30 * ratio);
  context.fillStyle = token("--text");
  context.font = `600 ${14 * ratio}px ${token("--sans")}`;
  context.fillText(title, 10 * ratio, 20 * ratio, canvas.width - 20 * ratio);
  return canvas;
}

function* tableOf({ lines, xLabel }: Props): Generator<(string | number | null)[]> {
  yield [xLabel, ...lines.map((line) => line.label)];
  const plain = lines.map((line) => ({ ...line, raw: null, low: null, high: null, y: line.raw ?? line.y }));
  const columns = joined(plain);
  for (let i = 0; i < (columns[0]?.length ?? 0); i++) yield columns.map((column) => column[i] ?? null);
}
