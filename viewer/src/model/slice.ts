// Slices of a tensor for a table or an image: one or two dimensions are shown, the others stand at an index.

export interface SliceChoice {
  // By dimension: an index, or null for the ones that are shown.
  indices: (number | null)[];
}

// The most that a table or an image shows along one dimension.
export const LONGEST = 512;

// `text` as the address has it ("3,:,:"), for a tensor of this shape. What does not fit is taken as index 0,
// and without a text the last two dimensions are shown.
export function parseSlice(text: string, shape: readonly number[]): SliceChoice {
  const parts = text === "" ? null : text.split(",").map((part) => part.trim());
  const indices = shape.map((size, dimension) => {
    const part = parts?.[dimension];
    if (parts === null) return dimension >= shape.length - 2 ? null : 0;
    if (part === ":") return null;
    const index = Number(part);
    return Number.isInteger(index) && index >= 0 && index < size ? index : 0;
  });
  const shown = indices.flatMap((index, dimension) => (index === null ? [dimension] : []));
  for (const dimension of shown.slice(0, -2)) indices[dimension] = 0;
  if (shown.length === 0 && shape.length > 0) indices[shape.length - 1] = null;
  return { indices };
}

export function formatSlice(choice: SliceChoice): string {
  return choice.indices.map((index) => (index === null ? ":" : index)).join(",");
}

// What to ask the server for: shown dimensions no longer than LONGEST.
export function askedSlice(choice: SliceChoice, shape: readonly number[]): string {
  return choice.indices
    .map((index, dimension) => index ?? (shape[dimension]! > LONGEST ? `0:${LONGEST}` : ":"))
    .join(",");
}

// The elements of the choice out of all elements in C order, as rows of a table.
export function takeSlice<T>(values: readonly T[], shape: readonly number[], choice: SliceChoice): T[][] {
  const strides = shape.map((_, d) => shape.slice(d + 1).reduce((product, size) => product * size, 1));
  const shown = choice.indices.flatMap((index, dimension) => (index === null ? [dimension] : []));
  const base = choice.indices.reduce<number>((sum, index, d) => sum + (index ?? 0) * strides[d]!, 0);
  const [rowDimension, columnDimension] = shown.length === 2 ? shown : [undefined, shown[0]];
  const length = (d: number | undefined) => (d === undefined ? 1 : Math.min(LONGEST, shape[d]!));
  const stride = (d: number | undefined) => (d === undefined ? 0 : strides[d]!);
  return Array.from({ length: length(rowDimension) }, (_, r) =>
    Array.from(
      { length: length(columnDimension) },
      (_, c) => values[base + r * stride(rowDimension) + c * stride(columnDimension)]!,
    ),
  );
}
