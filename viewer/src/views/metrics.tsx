// Losses and metrics over the steps, of one run or several.

import { useMemo } from "preact/hooks";
import { address, runPath } from "../api/address";
import type { RunSummary, Series, SeriesList } from "../api/types";
import { type Line, LineChart } from "../charts/line_chart";
import { lineColour } from "../charts/line_colour";
import { formatDuration, plural } from "../model/number";
import { smooth } from "../model/smoothing";
import { Alternatives, Toolbar } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { type Answer, useJson } from "../state/answer";
import { runs } from "../state/live";
import { adjust, place } from "../state/place";
import { theme } from "../state/theme";
import { AxisChoice } from "./axis_choice";

const MOST_RUNS = 8;
const MOST_CHARTS = 60;
const MODE_WORDS: Record<string, string> = { TRAIN: "train", EVAL: "eval", PREDICT: "predict", GLOBAL: "" };

export function Metrics({ run }: { run: RunSummary }) {
  const { overlay, smooth: weight, x, log, find } = place.value;
  const all = runs.value ?? [];
  const others = all
    .filter((other) => other.id !== run.id && overlay.includes(other.id))
    .slice(0, MOST_RUNS - 1);
  const shown = [run, ...others];
  const answers = useMetrics(shown);
  const charts = useMemo(
    () => chartsOf(shown, answers, { weight, x, theme: theme.value }),
    [...answers.map((a) => a.value), shown.map((r) => r.id).join(" "), weight, x, theme.value],
  );
  const isWanted = (title: string) => title.toLowerCase().includes(find.toLowerCase());
  const wanted = charts.filter((chart) => isWanted(chart.title));
  const first = answers[0]!;

  if (first.problem && !first.value) return <Trouble problem={first.problem} />;
  if (!first.value) return <Waiting />;
  return (
    <>
      <h1 class="visually-hidden">Losses and metrics of {run.name}</h1>
      <Toolbar>
        <Alternatives
          label="Along"
          value={x}
          options={[
            { value: "step", label: "steps" },
            { value: "time", label: "wall time" },
          ]}
          onChange={(next) => adjust({ x: next })}
        />
        <AxisChoice />
        <label class="control">
          <span>Smoothing</span>
          <span class="slider">
            <input
              type="range"
              min="0"
              max="0.99"
              step="0.01"
              value={weight}
              onInput={(event) => adjust({ smooth: Number(event.currentTarget.value) })}
            />
            <output>{weight.toFixed(2)}</output>
          </span>
        </label>
        {charts.length > 6 && (
          <label class="control">
            <span>Show only</span>
            <input
              type="search"
              value={find}
              placeholder="part of a name"
              onInput={(event) => adjust({ find: event.currentTarget.value })}
            />
          </label>
        )}
      </Toolbar>
      {all.length > 1 && <RunChoice run={run} all={all} shown={shown} />}
      {charts.length === 0 ? (
        <Empty
          title={
            run.steps === 0 ? "No step has been recorded yet." : "This run has no losses and no metrics."
          }
        >
          Scalars are recorded with <code>hook.save_scalar("accuracy", value)</code>; losses are found by
          themselves in the collection <code>losses</code>.
        </Empty>
      ) : (
        <div class="charts">
          {wanted.slice(0, MOST_CHARTS).map((chart) => (
            <LineChart
              key={chart.title}
              title={chart.title}
              lines={chart.lines}
              xLabel={x === "step" ? "step" : "after"}
              {...(x === "time" ? { formatX: formatDuration } : {})}
              isLog={log}
              height={230}
              group="metrics"
            />
          ))}
        </div>
      )}
      {wanted.length > MOST_CHARTS && (
        <p class="muted">
          {plural(wanted.length - MOST_CHARTS, "more chart")}: name a part of what you look for.
        </p>
      )}
    </>
  );
}

// One question for each run, always as many as may be shown.
function useMetrics(shown: readonly RunSummary[]): Answer<SeriesList>[] {
  return Array.from({ length: MOST_RUNS }, (_, i) => {
    const run = shown[i];
    return useJson<SeriesList>(run ? address(runPath(run.id, "metrics")) : null, run?.revision);
  });
}

function RunChoice({
  run,
  all,
  shown,
}: {
  run: RunSummary;
  all: readonly RunSummary[];
  shown: readonly RunSummary[];
}) {
  const toggle = (id: string) => {
    const { overlay } = place.value;
    adjust({ overlay: overlay.includes(id) ? overlay.filter((o) => o !== id) : [...overlay, id] });
  };
  return (
    <fieldset class="run-choice">
      <legend>Runs</legend>
      {all.map((other) => {
        const index = shown.findIndex((s) => s.id === other.id);
        return (
          <label key={other.id}>
            <input
              type="checkbox"
              checked={index >= 0}
              disabled={other.id === run.id || (index < 0 && shown.length >= MOST_RUNS)}
              onChange={() => toggle(other.id)}
            />
            {index >= 0 && <i class="swatch" style={{ borderColor: lineColour(index, theme.value) }} />}
            <bdi>{other.name}</bdi>
          </label>
        );
      })}
    </fieldset>
  );
}

interface Chart {
  title: string;
  lines: Line[];
}

// A chart for each name; runs have colours, evaluation is dashed. A single run has colours for its modes.
function chartsOf(
  shown: readonly RunSummary[],
  answers: readonly Answer<SeriesList>[],
  { weight, x, theme: colours }: { weight: number; x: "step" | "time"; theme: "light" | "dark" },
): Chart[] {
  const charts = new Map<string, Line[]>();
  for (const [index, run] of shown.entries()) {
    const found = answers[index]?.value?.series ?? [];
    // Training and evaluation count their own steps; in one chart they need one.
    const hasModes = new Set(found.map((series) => series.mode)).size > 1;
    for (const series of found) {
      const lines = charts.get(series.tensor) ?? [];
      charts.set(series.tensor, lines);
      const mode = MODE_WORDS[series.mode] ?? "";
      const isEval = series.mode === "EVAL" || series.mode === "PREDICT";
      const name = shown.length > 1 ? [run.name, mode].filter(Boolean).join(", ") : mode || "value";
      const colour = lineColour(shown.length > 1 ? index : isEval ? 1 : 0, colours);
      const start = run.first_wall_secs ?? 0;
      const at =
        x === "step"
          ? hasModes
            ? series.global_step
            : series.step
          : series.wall_secs.map((secs) => (secs ?? start) - start);
      lines.push(lineOf(series, at, { name, colour, isDashed: isEval, weight }));
    }
  }
  return [...charts].map(([title, lines]) => ({ title, lines }));
}

function lineOf(
  series: Series,
  at: number[],
  look: { name: string; colour: string; isDashed: boolean; weight: number },
): Line {
  const isBucketed = series.bucket > 1 && look.weight === 0;
  return {
    label: look.name,
    colour: look.colour,
    isDashed: look.isDashed,
    x: at,
    y: smooth(series.mean, look.weight),
    raw: look.weight > 0 ? series.mean : null,
    low: isBucketed ? series.min : null,
    high: isBucketed ? series.max : null,
    alarms: at.filter((_, i) => series.nans[i]! + series.infs[i]! > 0),
  };
}
