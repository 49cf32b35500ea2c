// The choices that all heat maps share: which tensors, which statistic, which colours.

import { source } from "../api/source";
import type { Mode, RunFacts } from "../api/types";
import type { ScaleKind } from "../model/colour_scale";
import { ROLE_NAMES, type StatisticChoice } from "../model/statistic_choice";
import { Alternatives, Choice } from "../parts/controls";
import { adjust, type Channel, place } from "../state/place";

const MODE_NAMES: Record<Mode, string> = {
  GLOBAL: "all modes",
  TRAIN: "training",
  EVAL: "evaluation",
  PREDICT: "prediction",
};

export function TensorChoices({ choice, facts }: { choice: StatisticChoice; facts: RunFacts }) {
  const modes = facts.modes.map(({ mode }) => mode).filter((mode) => mode !== "GLOBAL");
  return (
    <>
      <Choice
        label="Tensors"
        value={choice.role}
        options={choice.roles.map((role) => ({ value: role, label: ROLE_NAMES[role] }))}
        onChange={(role) => adjust({ role, first: null, count: null })}
      />
      <Choice
        label="Statistic"
        value={choice.statistic.name}
        options={choice.statistics.map(({ name, label }) => ({ value: name, label }))}
        onChange={(statistic) => adjust({ statistic })}
      />
      {modes.length > 1 && !source.isReport && (
        <Choice
          label="Steps of"
          value={place.value.mode}
          options={(["GLOBAL", ...modes] as Mode[]).map((mode) => ({ value: mode, label: MODE_NAMES[mode] }))}
          onChange={(mode) => adjust({ mode, from: null, to: null })}
        />
      )}
    </>
  );
}

export function ColourChoice({ kind }: { kind: ScaleKind }) {
  return (
    <Alternatives
      label="Colours"
      value={kind === "log" ? "log" : "linear"}
      options={[
        { value: "log", label: "log" },
        { value: "linear", label: "linear" },
      ]}
      onChange={(scale) => adjust({ scale })}
    />
  );
}

// Where a cell stands for several numbers.
export function ChannelChoice() {
  return (
    <Alternatives<Channel>
      label="Cells show"
      value={place.value.channel}
      options={[
        { value: "mean", label: "mean" },
        { value: "max", label: "largest" },
        { value: "min", label: "smallest" },
      ]}
      onChange={(channel) => adjust({ channel })}
    />
  );
}

export function scaleKind(choice: StatisticChoice): ScaleKind {
  const { scale } = place.value;
  return scale === "auto" ? (choice.statistic.suits_log ? "log" : "linear") : scale;
}
