// The elements of a tensor at a step, as table and as image, for any one or two of its dimensions.

import { useMemo } from "preact/hooks";
import { address, runPath } from "../api/address";
import { source } from "../api/source";
import type { Element, Histograms, RunFacts, RunSummary, Tensor, Values } from "../api/types";
import { csv } from "../model/csv";
import { formatNumber, grouped } from "../model/number";
import { askedSlice, formatSlice, LONGEST, parseSlice, takeSlice } from "../model/slice";
import { Choice } from "../parts/controls";
import { Empty, Trouble, Waiting } from "../parts/empty";
import { saveText } from "../parts/save";
import { ValueImage } from "../parts/value_image";
import { elementText, ValueTable } from "../parts/value_table";
import { useJson } from "../state/answer";
import { adjust, place } from "../state/place";
import { SliceControl } from "./slice_control";
import { histogramAddress } from "./tensor_distribution";

interface Props {
  run: RunSummary;
  tensor: Tensor;
  facts: RunFacts;
}

const LAST_STEP = "";

export function TensorValues({ run, tensor, facts }: Props) {
  const { step, slice, mode } = place.value;
  const shape = tensor.shape ?? [];
  const choice = parseSlice(slice, shape);
  const isText = tensor.dtype === "string" || tensor.dtype === "str";
  const question = source.isReport
    ? { id: tensor.id }
    : {
        id: tensor.id,
        mode,
        step,
        slice: isText || tensor.shape === null ? null : askedSlice(choice, shape),
      };
  const answer = useJson<Values>(
    address(runPath(run.id, "values"), question),
    step === null ? run.revision : 0,
  );
  const values = answer.value;
  const rows = useMemo(() => values && rowsOf(values, choice), [values, formatSlice(choice)]);
  const histograms = useJson<Histograms>(histogramAddress(run, tensor), run.revision).value;
  const steps = [...new Set([...(histograms?.steps ?? []), ...(step === null ? [] : [step])])].sort(
    (a, b) => a - b,
  );
  const isCut = choice.indices.some((index, d) => index === null && shape[d]! > LONGEST);

  return (
    <section class="panel" aria-labelledby="values-title">
      <div class="panel-head">
        <h2 id="values-title">Elements{values && ` at step ${grouped(values.step)}`}</h2>
        {!source.isReport && (
          <Choice
            label="Step"
            value={step === null ? LAST_STEP : String(step)}
            options={[
              { value: LAST_STEP, label: "the last one" },
              ...steps.map((s) => ({ value: String(s), label: grouped(s) })),
            ]}
            onChange={(next) => adjust({ step: next === LAST_STEP ? null : Number(next) })}
          />
        )}
        <SliceControl
          shape={shape}
          choice={choice}
          onChange={(next) => adjust({ slice: formatSlice(next) })}
        />
        <div class="actions">
          {values && rows && (
            <button
              type="button"
              class="button"
              onClick={() =>
                saveText(csv(rows.map((row) => row.map(cell))), `${tensor.name} ${values.step}`, "csv")
              }
            >
              CSV
            </button>
          )}
          {!source.isReport && !isText && values && (
            <a
              class="button"
              href={address(runPath(run.id, "values.npy"), { id: tensor.id, mode, step: values.step })}
              download
            >
              .npy
            </a>
          )}
        </div>
      </div>
      {answer.problem && !values && <Trouble problem={answer.problem} />}
      {!answer.problem && !values && <Waiting />}
      {values && rows && rows.length > 0 && rows[0]!.length > 0 ? (
        <>
          <p class="muted">
            {formatNumber(values.min)} to {formatNumber(values.max)}
            {values.nans + values.infs > 0 && (
              <span class="alarm">
                {" "}
                · {grouped(values.nans)} NaN, {grouped(values.infs)} infinite
              </span>
            )}
            {facts.worker_names.length > 1 && ` · ${values.worker}`}
            {isCut && ` · the first ${LONGEST} of each dimension; the .npy file has all`}
          </p>
          <div class="values">
            {isNumeric(rows) && (
              <ValueImage
                rows={rows as (number | null)[][]}
                low={values.min}
                high={values.max}
                name={tensor.name}
              />
            )}
            <ValueTable rows={rows} />
          </div>
        </>
      ) : (
        values && <Empty title="This tensor has no elements.">One of its dimensions is 0 long.</Empty>
      )}
    </section>
  );
}

// In a report all elements are there and the slice is taken here; a server takes it itself.
function rowsOf(values: Values, choice: ReturnType<typeof parseSlice>): Element[][] {
  if (source.isReport) return takeSlice(values.values, values.shape, choice);
  const { slice_shape: shape } = values;
  return takeSlice(values.values, shape, parseSlice("", shape));
}

function isNumeric(rows: readonly (readonly Element[])[]): boolean {
  const first = rows[0]?.find((value) => value !== null);
  return (
    rows.length * (rows[0]?.length ?? 0) > 1 && (typeof first === "number" || typeof first === "boolean")
  );
}

function cell(value: Element): string | number | null {
  return typeof value === "number" ? value : elementText(value);
}
