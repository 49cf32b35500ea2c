// The JSON answers of the server, as smd/server/openapi.yaml describes them.

export type Role =
  | "weight"
  | "bias"
  | "gradient"
  | "activation"
  | "input"
  | "loss"
  | "metric"
  | "optimizer"
  | "other";
export type RunState = "waiting" | "running" | "silent" | "ended" | "gone" | "failed";
export type Mode = "TRAIN" | "EVAL" | "PREDICT" | "GLOBAL";
export type Severity = "info" | "warning" | "error";
// A number, null where there is none, or "NaN", "Infinity", "-Infinity".
export type JsonNumber = number | string | null;

export interface Server {
  program: string;
  version: string;
  instance: string;
  is_report: boolean;
}

export interface RunSummary {
  id: string;
  name: string;
  path: string;
  state: RunState;
  revision: number;
  catalogue: number;
  steps: number;
  last_step: number | null;
  tensors: number;
  workers: number;
  first_wall_secs: number | null;
  last_wall_secs: number | null;
  findings: Record<Severity, number> | null;
  error: string | null;
}

export interface StatisticInfo {
  name: string;
  label: string;
  is_stored: boolean;
  suits_log: boolean;
}

export interface JsonFile {
  file: string;
  content: Record<string, unknown> | null;
}

export interface Bill {
  worker: string;
  cost_secs: number;
  training_secs: number;
  share: number;
  steps: number;
  saved_steps: number;
  tensors: number;
  bytes: number;
  stride: number;
}

export interface RunFacts extends RunSummary {
  layout: string;
  modes: { mode: Mode; steps: number; first_step: number; last_step: number }[];
  worker_names: string[];
  announced_workers: number;
  incomplete_steps: number;
  statistics: StatisticInfo[];
  collections: {
    name: string;
    tensors: number;
    value: boolean;
    shape: boolean;
    reductions: string[];
    patterns: string[];
  }[];
  files: {
    event_files: number;
    event_bytes: number;
    index_files: number;
    index_bytes: number;
    newest_secs: number | null;
  };
  health: {
    is_well: boolean;
    index_files_left_out: number;
    event_files_missing: number;
    temporary_files: number;
  };
  configuration: JsonFile[];
  bill: Bill[];
  notes: JsonFile[];
}

export interface Tensor {
  id: number;
  name: string;
  module: number;
  role: Role;
  collections: number[];
  dtype: string | null;
  shape: number[] | null;
  statistics: string[];
  has_value: boolean;
  modes: Mode[];
}

export interface Module {
  path: string;
  name: string;
  parent: number | null;
  first: number;
  count: number;
}

export interface Catalogue {
  catalogue: number;
  collections: string[];
  roles: { role: Role; tensors: number }[];
  tensors: Tensor[];
  modules: Module[];
}

export interface Steps {
  step: number[];
  global_step: number[];
}

export interface Series {
  tensor: string;
  id: number;
  role: Role;
  statistic: string;
  worker: string | null;
  mode: Mode;
  bucket: number;
  step: number[];
  // Counted over all modes.
  global_step: number[];
  last_step: number[];
  wall_secs: (number | null)[];
  mean: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
  nans: number[];
  infs: number[];
}

export interface SeriesList {
  series: Series[];
  left_out: number;
}

export interface Histograms {
  edges: number[];
  steps: number[];
  counts: number[][];
  nonfinite: number[];
  min: (number | null)[];
  max: (number | null)[];
  steps_with_value: number;
}

export type Element = number | string | boolean | null | JsonNumber[];

export interface Values {
  tensor: string;
  step: number;
  mode: Mode;
  worker: string;
  dtype: string;
  shape: number[];
  slice: string;
  slice_shape: number[];
  values: Element[];
  min: number | null;
  max: number | null;
  nans: number;
  infs: number;
}

export interface StepInfo {
  step: number;
  mode: Mode;
  mode_step: number;
}

export interface Violation {
  tensor: string;
  worker: string;
  metric: string;
  value: JsonNumber;
  op: string;
  threshold: JsonNumber;
  context: Record<string, unknown>;
}

export interface Finding {
  rank: number;
  rule: string;
  severity: Severity;
  message: string;
  summary: string;
  why: string;
  fix: string;
  explained_by: string | null;
  hits: number;
  violations: number;
  first: StepInfo;
  last: StepInfo;
  tensors: { tensor: string; id: number | null; first_step: number; hits: number }[];
  tensors_left_out: number;
  workers: string[];
  evidence: {
    step: number;
    parameters: Record<string, unknown>;
    message: string;
    violations: Violation[];
    violation_count: number;
  };
}

export interface Note {
  rule: string;
  message: string;
}

export interface Findings {
  state: "pending" | "live" | "final";
  steps: number;
  total_steps: number;
  findings: Finding[];
  no_issues_found: string[];
  not_evaluated: Note[];
  failed: Note[];
  remarks: Note[];
  unreadable_steps: number;
  first_problem: string | null;
}

export interface Rule {
  name: string;
  group: string;
  severity: Severity;
  summary: string;
  sees: string;
  why: string;
  fix: string;
  docs: string;
  parameters: { name: string; type: string; default: string; help: string }[];
}

export interface Difference {
  tensor: string;
  id: number | null;
  worker: string;
  step: number;
  mode: Mode;
  mode_step: number;
  step_in_b: number;
  kind: string;
  reduction: string | null;
  max_absolute: JsonNumber;
  max_relative: JsonNumber;
  elements: number;
  differing: number;
  worst_a: JsonNumber;
  worst_b: JsonNumber;
  a: string;
  b: string;
  occurrences: number;
}

export interface OnlyThere {
  tensors: string[];
  tensor_count: number;
  step_count: number;
  workers: string[];
  record_count: number;
}

export interface Comparison {
  state: "pending" | "ready" | "failed";
  done_steps: number;
  total_steps: number;
  error: string | null;
  result: {
    is_equal: boolean;
    first: Difference | null;
    table: Difference[];
    differing_tensors: number;
    only_in_a: OnlyThere;
    only_in_b: OnlyThere;
    compared: { steps: number; tensors: number; values: number; elements: number; reductions: number };
  } | null;
}
