// The run that the page shows, and the answers that most views need of it.

import { computed } from "@preact/signals";
import { runPath } from "../api/address";
import type { Catalogue, Findings, RunFacts, RunSummary } from "../api/types";
import { type Answer, useJson } from "./answer";
import { findingsNews, runs } from "./live";
import { place } from "./place";

// The one in the address, or else the one that was written last.
export const currentRun = computed<RunSummary | null>(() => {
  const known = runs.value ?? [];
  const wanted = place.value.run;
  if (wanted !== null) return known.find((run) => run.id === wanted) ?? null;
  const newest = (run: RunSummary) => run.last_wall_secs ?? 0;
  return known.reduce<RunSummary | null>(
    (best, run) => (best === null || newest(run) > newest(best) ? run : best),
    null,
  );
});

export function useFacts(run: RunSummary | null): Answer<RunFacts> {
  return useJson<RunFacts>(run && runPath(run.id), run?.revision);
}

export function useCatalogue(run: RunSummary | null): Answer<Catalogue> {
  return useJson<Catalogue>(run && runPath(run.id, "tensors"), run?.catalogue);
}

export function useFindings(run: RunSummary | null): Answer<Findings> {
  return useJson<Findings>(run && runPath(run.id, "findings"), `${run?.state} ${findingsNews.value}`);
}
