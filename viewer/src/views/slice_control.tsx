// Chooses which dimensions of a tensor are shown and at which index the others stand.

import type { SliceChoice } from "../model/slice";

interface Props {
  shape: readonly number[];
  choice: SliceChoice;
  onChange(choice: SliceChoice): void;
}

export function SliceControl({ shape, choice, onChange }: Props) {
  if (shape.length < 2) return null;
  const change = (dimension: number, index: number | null) => {
    const indices = choice.indices.with(dimension, index);
    // Two dimensions are shown at most: the other one that was shown first goes to its beginning.
    const shown = indices.flatMap((at, d) => (at === null && d !== dimension ? [d] : []));
    if (index === null && shown.length > 1) indices[shown[0]!] = 0;
    onChange({ indices });
  };
  return (
    <fieldset class="control slice">
      <legend>Slice</legend>
      <div>
        {shape.map((size, dimension) => {
          const index = choice.indices[dimension] ?? null;
          return (
            <span key={dimension} class="slice-dimension">
              <button
                type="button"
                aria-pressed={index === null}
                aria-label={`Show dimension ${dimension} of size ${size}`}
                onClick={() => change(dimension, index === null ? 0 : null)}
              >
                :
              </button>
              <input
                type="number"
                min={0}
                max={size - 1}
                value={index ?? ""}
                placeholder={String(size)}
                aria-label={`Index in dimension ${dimension} of size ${size}`}
                onInput={(event) => {
                  const next = event.currentTarget.valueAsNumber;
                  if (Number.isInteger(next) && next >= 0 && next < size) change(dimension, next);
                }}
              />
            </span>
          );
        })}
      </div>
    </fieldset>
  );
}
