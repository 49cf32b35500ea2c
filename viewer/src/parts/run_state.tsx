// How a run is, in a word and a dot.

import type { RunState, RunSummary } from "../api/types";
import { formatDuration, grouped } from "../model/number";

const WORDS: Record<RunState, string> = {
  waiting: "waiting for the first step",
  running: "live",
  silent: "silent for ten minutes",
  ended: "finished",
  gone: "files removed",
  failed: "cannot be read",
};

export function RunStateBadge({ run }: { run: RunSummary }) {
  return (
    <span class={`run-state run-state-${run.state}`} role="status">
      <i aria-hidden="true" />
      {WORDS[run.state]}
    </span>
  );
}

// How far it is, for the head of the page.
export function RunProgress({ run }: { run: RunSummary }) {
  const secs = (run.last_wall_secs ?? 0) - (run.first_wall_secs ?? 0);
  return (
    <span class="run-progress">
      {run.last_step === null ? "no step yet" : `step ${grouped(run.last_step)}`}
      {secs > 0 && <span class="muted"> · {formatDuration(secs)}</span>}
    </span>
  );
}
