// Which tensors and which of their statistics a heat map can show.

import type { Catalogue, Role, RunFacts, StatisticInfo } from "../api/types";

export const ROLE_NAMES: Record<Role, string> = {
  gradient: "Gradients",
  weight: "Weights",
  bias: "Biases",
  activation: "Activations",
  input: "Inputs",
  optimizer: "Optimizer state",
  other: "Other tensors",
  loss: "Losses",
  metric: "Metrics",
};
const ROLES = Object.keys(ROLE_NAMES) as Role[];

export interface StatisticChoice {
  role: Role;
  statistic: StatisticInfo;
  roles: Role[];
  statistics: StatisticInfo[];
}

// Computed from saved values of a tensor alone.
const OF_VALUES = new Set(["nan_count", "inf_count", "zero_count", "zero_percent"]);
const OF_WEIGHTS = new Set(["update_ratio", "gradient_ratio"]);
const IN_REPORTS = new Set(["nonfinite", "gradient_ratio"]);

// The wanted role and statistic as far as the run has them, else the first that says most; null if it has none.
export function chooseStatistic(
  facts: Pick<RunFacts, "statistics">,
  catalogue: Catalogue,
  wanted: { role: string | null; statistic: string | null },
  isReport: boolean,
): StatisticChoice | null {
  const known = facts.statistics.filter((s) => !isReport || s.is_stored || IN_REPORTS.has(s.name));
  const recorded = recordedByRole(catalogue);
  const byRole = new Map<Role, StatisticInfo[]>();
  for (const role of ROLES) {
    const statistics = statisticsOf(role, recorded.get(role), known);
    if (statistics.length > 0) byRole.set(role, statistics);
  }
  const roles = [...byRole.keys()];
  const role = roles.find((r) => r === wanted.role) ?? roles[0];
  if (role === undefined) return null;
  const statistics = byRole.get(role)!;
  const statistic = statistics.find((s) => s.name === wanted.statistic) ?? statistics[0]!;
  return { role, statistic, roles, statistics };
}

// What was saved of the tensors of a role.
interface Recorded {
  stored: Set<string>;
  hasValue: boolean;
}

function recordedByRole(catalogue: Catalogue): Map<Role, Recorded> {
  const byRole = new Map<Role, Recorded>();
  for (const { role, has_value, statistics } of catalogue.tensors) {
    let recorded = byRole.get(role);
    if (!recorded) {
      recorded = { stored: new Set(), hasValue: false };
      byRole.set(role, recorded);
    }
    recorded.hasValue ||= has_value;
    for (const name of statistics) recorded.stored.add(name);
  }
  return byRole;
}

function statisticsOf(
  role: Role,
  recorded: Recorded | undefined,
  known: readonly StatisticInfo[],
): StatisticInfo[] {
  if (!recorded) return [];
  const { stored, hasValue } = recorded;
  const hasSome = hasValue || stored.size > 0;
  return known.filter(({ name }) => {
    if (stored.has(name)) return true;
    if (OF_VALUES.has(name)) return hasValue;
    if (OF_WEIGHTS.has(name)) return role === "weight" && hasSome;
    return name === "nonfinite"
      ? hasSome
      : name === "value" && hasValue && (role === "loss" || role === "metric");
  });
}
