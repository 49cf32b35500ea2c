// How the elements of a tensor are distributed, at steps of the whole run.

import { address, runPath } from "../api/address";
import { source } from "../api/source";
import type { Histograms, RunSummary, Tensor } from "../api/types";
import { Ridgeline } from "../charts/ridgeline";
import { grouped, plural } from "../model/number";
import { Alternatives } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { useJson } from "../state/answer";
import { adjust, place } from "../state/place";

// The distributions that stand in a report have no parameters.
export function histogramAddress(run: RunSummary, tensor: Tensor): string {
  const { mode } = place.value;
  return address(
    runPath(run.id, "histograms"),
    source.isReport ? { id: tensor.id } : { id: tensor.id, mode },
  );
}

// How to read the picture.
const READING = {
  ridges: "Steps from top to bottom, values from left to right; a click shows the elements of a step.",
  map: "Steps from left to right, values from bottom to top; brighter where more elements are.",
};

export function TensorDistribution({ run, tensor }: { run: RunSummary; tensor: Tensor }) {
  const { distribution } = place.value;
  const answer = useJson<Histograms>(histogramAddress(run, tensor), run.revision);
  const histograms = answer.value;
  const bad = histograms?.nonfinite.reduce((sum, count) => sum + count, 0) ?? 0;
  return (
    <section class="panel" aria-labelledby="distribution-title">
      <div class="panel-head">
        <h2 id="distribution-title">Distribution of the elements</h2>
        <Alternatives
          label="As"
          value={distribution}
          options={[
            { value: "ridges", label: "ridges" },
            { value: "map", label: "map" },
          ]}
          onChange={(next) => adjust({ distribution: next })}
        />
      </div>
      {answer.problem && !histograms && <Trouble problem={answer.problem} />}
      {!answer.problem && !histograms && <Waiting />}
      {histograms && histograms.edges.length < 2 && (
        <Empty title="No finite element was saved.">There is no distribution to show.</Empty>
      )}
      {histograms && histograms.edges.length >= 2 && (
        <>
          <Ridgeline
            histograms={histograms}
            kind={distribution}
            name={tensor.name}
            onPick={(step) => adjust({ step })}
          />
          <p class="muted">
            {READING[distribution]} {histograms.steps.length} of {plural(histograms.steps_with_value, "step")}{" "}
            with values.
            {bad > 0 && <span class="alarm"> {grouped(bad)} elements were not finite.</span>}
          </p>
        </>
      )}
    </section>
  );
}
