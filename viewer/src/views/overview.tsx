// The whole model on one screen: which layer is sick, and since when.

import { useMemo } from "preact/hooks";
import { address, runPath } from "../api/address";
import { source } from "../api/source";
import type { Finding, RunSummary, Steps } from "../api/types";
import { Heatmap } from "../heatmap/heatmap";
import type { Mark } from "../heatmap/mark";
import type { StepFlag } from "../heatmap/step_flags";
import { grouped } from "../model/number";
import { plainText } from "../model/plain_text";
import { chooseStatistic, ROLE_NAMES } from "../model/statistic_choice";
import { Toolbar } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { SeverityBadge } from "../parts/severity";
import { TensorSearch } from "../parts/tensor_search";
import { useWindowHeight } from "../parts/window_height";
import { useJson } from "../state/answer";
import { adjust, go, linkTo, place } from "../state/place";
import { useCatalogue, useFacts, useFindings } from "../state/run";
import { ChannelChoice, ColourChoice, scaleKind, TensorChoices } from "./heatmap_controls";

// From so many tensors or steps on a cell may stand for several.
const MANY = 400;
const NOTHING: readonly Finding[] = [];

export function Overview({ run }: { run: RunSummary }) {
  const facts = useFacts(run);
  const catalogue = useCatalogue(run);
  const findings = useFindings(run).value?.findings ?? NOTHING;
  const { mode, statistic, role, from, to, first, count, collapsed, channel } = place.value;
  const globalSteps = useJson<Steps>(
    mode === "GLOBAL" ? null : address(runPath(run.id, "steps"), { mode }),
    run.revision,
  ).value;
  const marks = useMemo(() => marksOf(findings, globalSteps), [findings, globalSteps]);
  const flags = useMemo(() => flagsOf(findings, globalSteps), [findings, globalSteps, place.value]);
  const most = useWindowHeight(250, 320);
  const choice = useMemo(
    () =>
      facts.value && catalogue.value
        ? chooseStatistic(facts.value, catalogue.value, { role, statistic }, source.isReport)
        : null,
    [facts.value, catalogue.value, role, statistic],
  );

  const problem = facts.problem ?? catalogue.problem;
  if (problem && !(facts.value && catalogue.value)) return <Trouble problem={problem} />;
  if (!facts.value || !catalogue.value) return <Waiting />;
  if (!choice) return <NoTensors run={run} />;
  const kind = scaleKind(choice);
  const roleCount = catalogue.value.roles.find((r) => r.role === choice.role)?.tensors ?? 0;
  const name = `${choice.statistic.label} of ${ROLE_NAMES[choice.role].toLowerCase()}`;

  return (
    <>
      <h1 class="visually-hidden">Overview of {run.name}</h1>
      <Toolbar>
        <TensorChoices choice={choice} facts={facts.value} />
        <ColourChoice kind={kind} />
        {(roleCount > MANY || run.steps > MANY || collapsed.length > 0) && <ChannelChoice />}
        <span class="toolbar-space" />
        <TensorSearch
          catalogue={catalogue.value}
          onOpen={(tensor) => go({ view: "tensor", tensor: tensor.name })}
        />
      </Toolbar>
      <ProbableCause findings={findings} />
      <Heatmap
        label={`${name}, ${run.name}`}
        question={{
          path: runPath(run.id, "heatmap"),
          parameters: { role: choice.role, statistic: choice.statistic.name, mode },
          revision: run.revision,
        }}
        catalogue={catalogue.value}
        collapsed={collapsed}
        onCollapse={(paths) => adjust({ collapsed: paths })}
        part={{ from, to, first, count }}
        onPart={adjust}
        marks={marks}
        flags={flags}
        scale={kind}
        channel={channel}
        unit={choice.statistic.label}
        empty={`No tensor of this kind has '${choice.statistic.label}' at these steps. Choose another statistic or other tensors.`}
        most={most}
        onOpen={(tensor, step) => go({ view: "tensor", tensor: tensor.name, step, slice: "" })}
      />
    </>
  );
}

function ProbableCause({ findings }: { findings: readonly Finding[] }) {
  const worst = findings[0];
  if (!worst) return null;
  const others = findings.length - 1;
  return (
    <p class="probable-cause">
      <SeverityBadge severity={worst.severity} />
      <a class="probable-message" href={linkTo({ view: "findings", rank: worst.rank })}>
        <bdi title={plainText(worst.message)}>{plainText(worst.message)}</bdi>
      </a>
      {others > 0 && (
        <a class="probable-others" href={linkTo({ view: "findings", rank: null })}>
          {grouped(others)} more {others === 1 ? "finding" : "findings"}
        </a>
      )}
    </p>
  );
}

function NoTensors({ run }: { run: RunSummary }) {
  if (run.steps === 0) {
    return (
      <Empty title="No step has been recorded yet.">
        The page fills by itself as soon as the training saves its first step.
      </Empty>
    );
  }
  return (
    <Empty title="This run has no tensors with statistics.">
      Record weights and gradients, for example with <code>include_collections=["weights", "gradients"]</code>
      . Losses and metrics stand under <a href={linkTo({ view: "metrics" })}>Metrics</a>.
    </Empty>
  );
}

// Where each finding begins; in steps of the mode if `steps` tells them.
function flagsOf(findings: readonly Finding[], steps: Steps | null): StepFlag[] {
  const ofMode = steps && new Map(steps.global_step.map((step, at) => [step, steps.step[at]!]));
  return findings.flatMap(({ first, severity, rule, rank }) => {
    const step = ofMode ? ofMode.get(first.step) : first.step;
    return step === undefined
      ? []
      : [{ step, severity, text: rule, href: linkTo({ view: "findings", rank }) }];
  });
}

// Where each tensor was hit first, likewise.
function marksOf(findings: readonly Finding[], steps: Steps | null): Mark[] {
  const ofMode = steps && new Map(steps.global_step.map((step, at) => [step, steps.step[at]!]));
  return findings.flatMap((finding) =>
    finding.tensors.flatMap(({ id, first_step }) => {
      const step = ofMode ? ofMode.get(first_step) : first_step;
      if (id === null || step === undefined) return [];
      return [
        {
          tensorId: id,
          step,
          severity: finding.severity,
          text: `${finding.rule}: ${finding.summary}`,
          sort: finding.severity,
        },
      ];
    }),
  );
}
