// Two runs side by side, and where they part.

import { useEffect, useMemo, useState } from "preact/hooks";
import { address, runPath } from "../api/address";
import { source } from "../api/source";
import type { Comparison, Difference, OnlyThere, RunSummary, Tensor } from "../api/types";
import { Heatmap } from "../heatmap/heatmap";
import type { Mark } from "../heatmap/mark";
import { formatNumber, formatPair, grouped, plural } from "../model/number";
import { chooseStatistic } from "../model/statistic_choice";
import { Alternatives, Choice, Toolbar } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { useJson } from "../state/answer";
import { comparisonNews, runs } from "../state/live";
import { adjust, go, linkTo, place } from "../state/place";
import { useCatalogue, useFacts } from "../state/run";
import { ColourChoice, scaleKind, TensorChoices } from "./heatmap_controls";

const MOST_ROWS = 30;
const HEIGHT = 330;
// How often a comparison that is being made is asked for its progress.
const PROGRESS_MILLIS = 500;

export function Compare({ run }: { run: RunSummary }) {
  const others = (runs.value ?? []).filter((other) => other.id !== run.id);
  const other = others.find((o) => o.id === place.value.other) ?? others[0];
  if (!other) {
    return (
      <Empty title="There is only one run.">
        Serve two runs, or a folder with several: <code>smdebug serve RUN OTHER_RUN</code>
      </Empty>
    );
  }
  return <ComparePair a={run} b={other} others={others} />;
}

function ComparePair({ a, b, others }: { a: RunSummary; b: RunSummary; others: readonly RunSummary[] }) {
  const facts = useFacts(a).value;
  const catalogueA = useCatalogue(a).value;
  const catalogueB = useCatalogue(b).value;
  const { role, statistic, mode, from, to, first, count, collapsed, difference } = place.value;
  const pair = source.isReport ? { a: a.id, b: b.id } : { a: a.id, b: b.id, mode };
  const revision = `${a.revision} ${b.revision}`;
  const [look, setLook] = useState(0);
  const news = `${revision} ${comparisonNews.value} ${look}`;
  const answer = useJson<Comparison>(address("/api/compare", pair), news);
  // The news that it is ready may have come before anybody listened.
  useEffect(() => {
    if (answer.value?.state !== "pending") return;
    const timer = window.setTimeout(() => setLook((n) => n + 1), PROGRESS_MILLIS);
    return () => window.clearTimeout(timer);
  }, [answer.value]);
  const result = answer.value?.result ?? null;
  const marks = useMemo(() => firstMark(result?.first ?? null), [result]);
  const flags = useMemo(
    () => marks.map(({ step, severity, text }) => ({ step, severity, text, href: null })),
    [marks],
  );
  if (!facts || !catalogueA || !catalogueB) return <Waiting />;
  // Without a choice: the kind of tensor that differs first.
  const firstRole = catalogueA.tensors.find((tensor) => tensor.id === result?.first?.id)?.role ?? null;
  const choice = chooseStatistic(facts, catalogueA, { role: role ?? firstRole, statistic }, source.isReport);
  const shared = choice && {
    part: { from, to, first, count },
    collapsed,
    marks,
    flags,
    channel: place.value.channel,
    most: HEIGHT,
    onCollapse: (paths: string[]) => adjust({ collapsed: paths }),
    onPart: adjust,
    onOpen: (tensor: Tensor, step: number) => go({ view: "tensor", tensor: tensor.name, step }),
  };
  const parameters = choice && { role: choice.role, statistic: choice.statistic.name, mode };

  return (
    <>
      <h1 class="visually-hidden">
        {a.name} compared with {b.name}
      </h1>
      <Toolbar>
        <Choice
          label={`Compare ${a.name} with`}
          value={b.id}
          options={others.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={(id) => adjust({ other: id })}
        />
        {choice && <TensorChoices choice={choice} facts={facts} />}
        {choice && <ColourChoice kind={scaleKind(choice)} />}
        {!source.isReport && (
          <Alternatives
            label="Difference"
            value={difference}
            options={[
              { value: "relative", label: "relative" },
              { value: "difference", label: "absolute" },
            ]}
            onChange={(next) => adjust({ difference: next })}
          />
        )}
      </Toolbar>
      {answer.problem && !answer.value && <Trouble problem={answer.problem} />}
      {answer.value && <Verdict comparison={answer.value} a={a} b={b} />}
      {shared && parameters && (
        <>
          <section class="panel">
            <h2>
              Difference, <bdi>{b.name}</bdi> − <bdi>{a.name}</bdi>
            </h2>
            <Heatmap
              {...shared}
              label={`Difference of ${choice.statistic.label}, ${b.name} minus ${a.name}`}
              question={{
                path: "/api/compare/heatmap",
                parameters: { ...parameters, ...pair, as: source.isReport ? null : difference },
                revision,
              }}
              catalogue={catalogueA}
              scale="around_zero"
              unit={difference === "relative" ? "relative difference" : "difference"}
              empty="The runs have no tensor and step in common for this statistic."
            />
          </section>
          <div class="side-by-side">
            {[a, b].map((run) => (
              <section class="panel" key={run.id}>
                <h2>
                  <bdi>{run.name}</bdi>
                </h2>
                <Heatmap
                  {...shared}
                  marks={run === a ? marks : []}
                  label={`${choice.statistic.label}, ${run.name}`}
                  question={{ path: runPath(run.id, "heatmap"), parameters, revision: run.revision }}
                  catalogue={run === a ? catalogueA : catalogueB}
                  scale={scaleKind(choice)}
                  unit={choice.statistic.label}
                  empty="This run has no such tensor."
                  onOpen={(tensor, step) => go({ view: "tensor", run: run.id, tensor: tensor.name, step })}
                />
              </section>
            ))}
          </div>
        </>
      )}
      {result && !result.is_equal && (
        <DifferenceTable table={result.table} total={result.differing_tensors} />
      )}
      {result && <OnlyIn run={a} only={result.only_in_a} />}
      {result && <OnlyIn run={b} only={result.only_in_b} />}
    </>
  );
}

function firstMark(first: Difference | null): Mark[] {
  if (!first || first.id === null) return [];
  const step = place.value.mode === "GLOBAL" ? first.step : first.mode_step;
  return [
    { tensorId: first.id, step, severity: "error", text: "The runs part here", sort: "first difference" },
  ];
}

function Verdict({ comparison, a, b }: { comparison: Comparison; a: RunSummary; b: RunSummary }) {
  const { state, result, done_steps, total_steps } = comparison;
  if (state === "failed") {
    return (
      <p class="verdict alarm" role="alert">
        {comparison.error}
      </p>
    );
  }
  if (!result) {
    return (
      <p class="verdict" role="status">
        <progress value={done_steps} max={Math.max(1, total_steps)} aria-label="Compared steps" /> Compared{" "}
        {grouped(done_steps)} of {plural(total_steps, "step")}
      </p>
    );
  }
  const { first, compared } = result;
  if (result.is_equal || !first) {
    return (
      <p class="verdict">
        <strong>No difference</strong> in {plural(compared.tensors, "tensor")} at{" "}
        {plural(compared.steps, "step")}.
      </p>
    );
  }
  const [inA, inB] = formatPair(first.worst_a, first.worst_b);
  return (
    <p class="verdict">
      <strong>They part at step {grouped(first.step)}</strong> in{" "}
      <a href={linkTo({ view: "tensor", tensor: first.tensor, step: first.step })}>
        <bdi>{first.tensor}</bdi>
      </a>
      : <bdi>{a.name}</bdi> has {inA}, <bdi>{b.name}</bdi> has {inB}
      {first.reduction && ` (${first.reduction})`}. {plural(result.differing_tensors, "tensor")} of{" "}
      {grouped(compared.tensors)} differ somewhere.
    </p>
  );
}

function DifferenceTable({ table, total }: { table: readonly Difference[]; total: number }) {
  return (
    <section class="panel">
      <h2>Largest differences</h2>
      <div class="scroll-x">
        <table>
          <thead>
            <tr>
              <th>tensor</th>
              <th class="number">worst at step</th>
              <th>what</th>
              <th class="number">a</th>
              <th class="number">b</th>
              <th class="number">absolute</th>
              <th class="number">relative</th>
              <th class="number">times</th>
            </tr>
          </thead>
          <tbody>
            {table.slice(0, MOST_ROWS).map((row, at) => (
              <tr key={at}>
                <td class="name">
                  <a href={linkTo({ view: "tensor", tensor: row.tensor, step: row.step })}>
                    <bdi>{row.tensor}</bdi>
                  </a>
                </td>
                <td class="number">{grouped(row.step)}</td>
                <td>{row.reduction ?? row.kind}</td>
                {formatPair(row.worst_a, row.worst_b).map((text, side) => (
                  <td key={side} class="number">
                    {text}
                  </td>
                ))}
                <td class="number">{formatNumber(row.max_absolute)}</td>
                <td class="number">{formatNumber(row.max_relative)}</td>
                <td class="number">{grouped(row.occurrences)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > MOST_ROWS && <p class="muted">and {plural(total - MOST_ROWS, "more tensor")}</p>}
    </section>
  );
}

function OnlyIn({ run, only }: { run: RunSummary; only: OnlyThere }) {
  if (only.tensor_count === 0 && only.step_count === 0) return null;
  return (
    <details class="panel">
      <summary>
        Only in <bdi>{run.name}</bdi>: {plural(only.tensor_count, "tensor")},{" "}
        {plural(only.step_count, "step")}
      </summary>
      <ul class="plain">
        {only.tensors.slice(0, MOST_ROWS).map((tensor) => (
          <li key={tensor} class="name">
            <bdi>{tensor}</bdi>
          </li>
        ))}
      </ul>
    </details>
  );
}
