// All statistics of a tensor over the steps, a small chart for each; the workers apart if wanted.

import { useMemo } from "preact/hooks";
import { address, runPath } from "../api/address";
import { source } from "../api/source";
import type { RunFacts, RunSummary, Series, SeriesList, Tensor } from "../api/types";
import { type Line, LineChart } from "../charts/line_chart";
import { lineColour } from "../charts/line_colour";
import { Alternatives } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { useJson } from "../state/answer";
import { adjust, place } from "../state/place";
import { type Theme, theme } from "../state/theme";
import { AxisChoice } from "./axis_choice";

const REPORT_POINTS = 400;
// More lines than this cannot be told apart.
const MOST_WORKERS = 16;

interface Props {
  run: RunSummary;
  tensor: Tensor;
  facts: RunFacts;
}

export function TensorStatistics({ run, tensor, facts }: Props) {
  const { workers: isByWorker, mode, log, step } = place.value;
  const canCompare = facts.worker_names.length > 1 && !source.isReport;
  const isApart = isByWorker && canCompare;
  const question = source.isReport
    ? { id: tensor.id, points: REPORT_POINTS }
    : { id: tensor.id, mode, worker: isApart ? facts.worker_names.slice(0, MOST_WORKERS) : null };
  const answer = useJson<SeriesList>(address(runPath(run.id, "series"), question), run.revision);
  const charts = useMemo(
    () => chartsOf(answer.value?.series ?? [], isApart, theme.value),
    [answer.value, isApart, theme.value],
  );
  const label = (name: string) => facts.statistics.find((s) => s.name === name)?.label ?? name;

  return (
    <section class="panel" aria-labelledby="statistics-title">
      <div class="panel-head">
        <h2 id="statistics-title">Statistics</h2>
        <AxisChoice />
        {canCompare && (
          <Alternatives
            label="Workers"
            value={isByWorker ? "apart" : "first"}
            options={[
              { value: "first", label: "first that has it" },
              { value: "apart", label: "each" },
            ]}
            onChange={(next) => adjust({ workers: next === "apart" })}
          />
        )}
      </div>
      {answer.problem && !answer.value && <Trouble problem={answer.problem} />}
      {!answer.problem && !answer.value && <Waiting />}
      {answer.value && charts.length === 0 && (
        <Empty title="No statistic of this tensor was saved.">
          Its distribution and its elements stand below, if they were saved.
        </Empty>
      )}
      <div class="charts charts-small">
        {charts.map((chart) => (
          <LineChart
            key={chart.statistic}
            title={label(chart.statistic)}
            lines={chart.lines}
            xLabel="step"
            isLog={log}
            height={150}
            group="tensor"
            markX={step}
            onPick={(at) => adjust({ step: at })}
          />
        ))}
      </div>
    </section>
  );
}

function chartsOf(series: readonly Series[], isApart: boolean, colours: Theme) {
  const charts = new Map<string, Line[]>();
  for (const one of series) {
    const lines = charts.get(one.statistic) ?? [];
    charts.set(one.statistic, lines);
    const isBucketed = one.bucket > 1;
    lines.push({
      label: isApart ? (one.worker ?? "first") : isBucketed ? "mean, with smallest and largest" : "value",
      colour: lineColour(lines.length, colours),
      isDashed: false,
      x: one.step,
      y: one.mean,
      raw: null,
      low: isBucketed ? one.min : null,
      high: isBucketed ? one.max : null,
      alarms: one.step.filter((_, i) => one.nans[i]! + one.infs[i]! > 0),
    });
  }
  return [...charts].map(([statistic, lines]) => ({ statistic, lines }));
}
