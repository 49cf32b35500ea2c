// One tensor: its statistics over the steps, how its elements are distributed, the elements themselves.

import type { ComponentChildren } from "preact";
import type { Catalogue, RunSummary, Tensor } from "../api/types";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { TensorSearch } from "../parts/tensor_search";
import { adjust, go, place } from "../state/place";
import { useCatalogue, useFacts } from "../state/run";
import { TensorDistribution } from "./tensor_distribution";
import { TensorStatistics } from "./tensor_statistics";
import { TensorValues } from "./tensor_values";

export function TensorView({ run }: { run: RunSummary }) {
  const answer = useCatalogue(run);
  const facts = useFacts(run).value;
  const catalogue = answer.value;
  if (answer.problem && !catalogue) return <Trouble problem={answer.problem} />;
  if (!catalogue || !facts) return <Waiting />;
  const name = place.value.tensor;
  const tensor = name === null ? firstTensor(catalogue) : catalogue.tensors.find((t) => t.name === name);
  const search = (
    <TensorSearch catalogue={catalogue} onOpen={(t) => go({ tensor: t.name, step: null, slice: "" })} />
  );
  if (!tensor) {
    return (
      <>
        <div class="tensor-head">{search}</div>
        <Empty
          title={name === null ? "This run has no tensors yet." : "This run has no tensor of this name."}
        >
          {name !== null && (
            <>
              <p class="name">
                <bdi>{name}</bdi>
              </p>
              <p>Look for it by a part of its name.</p>
            </>
          )}
        </Empty>
      </>
    );
  }
  return (
    <>
      <TensorHead tensor={tensor} catalogue={catalogue} search={search} />
      <TensorStatistics run={run} tensor={tensor} facts={facts} />
      {tensor.has_value ? (
        <>
          <TensorDistribution run={run} tensor={tensor} />
          <TensorValues run={run} tensor={tensor} facts={facts} />
        </>
      ) : (
        <Empty title="The elements of this tensor were not saved.">
          Only its statistics were. Save elements with <code>save_raw_tensor=True</code> in the reduction
          configuration.
        </Empty>
      )}
    </>
  );
}

// Without a name: something that tells about training.
function firstTensor(catalogue: Catalogue): Tensor | undefined {
  return catalogue.tensors.find((tensor) => tensor.role === "weight") ?? catalogue.tensors[0];
}

interface HeadProps {
  tensor: Tensor;
  catalogue: Catalogue;
  search: ComponentChildren;
}

function TensorHead({ tensor, catalogue, search }: HeadProps) {
  const at = catalogue.tensors.indexOf(tensor);
  const step = (by: number) => {
    const next = catalogue.tensors[at + by];
    if (next) adjust({ tensor: next.name, slice: "" });
  };
  const facts = [
    tensor.role,
    tensor.dtype,
    tensor.shape && (tensor.shape.length === 0 ? "scalar" : tensor.shape.join(" × ")),
    tensor.collections.map((index) => catalogue.collections[index]).join(", "),
  ].filter(Boolean);
  return (
    <header class="tensor-head">
      <div class="tensor-title">
        <h1>
          <bdi>{tensor.name}</bdi>
        </h1>
        <p class="muted">{facts.join(" · ")}</p>
      </div>
      <div class="actions">
        <button
          type="button"
          class="button"
          disabled={at === 0}
          onClick={() => step(-1)}
          aria-label="Previous tensor"
        >
          ←
        </button>
        <button
          type="button"
          class="button"
          disabled={at === catalogue.tensors.length - 1}
          onClick={() => step(1)}
          aria-label="Next tensor"
        >
          →
        </button>
        {search}
      </div>
    </header>
  );
}
