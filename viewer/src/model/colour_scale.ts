// Which colour a number has: linear, logarithmic, or around zero.

import { SIZE } from "./colour_map";

export type ScaleKind = "linear" | "log" | "around_zero";

export interface ColourScale {
  kind: ScaleKind;
  low: number;
  high: number;
  // Numbers beyond the ends exist and have the colour of the end.
  isCutLow: boolean;
  isCutHigh: boolean;
}

// So many of the numbers may lie beyond each end: single outliers would leave all others in one colour.
const CUT_SHARE = 0.002;
const SAMPLES = 20_000;
const DECADES = 12;

// The scale that shows these numbers best; null if there is no finite one.
export function fitScale(values: Float32Array, kind: ScaleKind): ColourScale | null {
  const sorted = sample(values, kind);
  if (sorted.length === 0) return kind === "log" ? fitScale(values, "linear") : null;
  const cut = Math.floor(sorted.length * CUT_SHARE);
  let low = sorted[cut]!;
  let high = sorted[sorted.length - 1 - cut]!;
  if (kind === "log") low = Math.max(low, high / 10 ** DECADES);
  // Numbers of both signs are about their sign first of all.
  const isAroundZero = kind === "around_zero" || (kind === "linear" && low < 0 && high > 0);
  if (isAroundZero) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  return {
    kind: isAroundZero ? "around_zero" : kind,
    low,
    high,
    isCutLow: sorted[0]! < low,
    isCutHigh: sorted[sorted.length - 1]! > high,
  };
}

function sample(values: Float32Array, kind: ScaleKind): Float32Array {
  const stride = Math.max(1, Math.floor(values.length / SAMPLES));
  const taken = new Float32Array(Math.ceil(values.length / stride));
  let count = 0;
  for (let i = 0; i < values.length; i += stride) {
    const value = values[i]!;
    if (Number.isFinite(value) && (kind !== "log" || value > 0)) taken[count++] = value;
  }
  return taken.subarray(0, count).sort();
}

// 0 to 1 within the scale, cut at its ends. Of a finite number.
export function position(scale: ColourScale, value: number): number {
  const { low, high } = scale;
  if (scale.kind === "log") {
    if (value <= low) return 0;
    if (value >= high) return 1;
    return Math.log(value / low) / Math.log(high / low);
  }
  if (high === low) return 0.5;
  return Math.min(1, Math.max(0, (value - low) / (high - low)));
}

export function paletteIndex(scale: ColourScale, value: number): number {
  return Math.min(SIZE - 1, Math.floor(position(scale, value) * SIZE));
}

// The number at a place of the scale, 0 to 1.
export function valueAt(scale: ColourScale, at: number): number {
  if (scale.kind === "log") return scale.low * (scale.high / scale.low) ** at;
  return scale.low + at * (scale.high - scale.low);
}
