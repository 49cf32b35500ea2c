// Numbers, sizes and times as texts for people.

import type { JsonNumber } from "../api/types";

const MINUS = "\u2212";

// Four significant digits; powers of ten where plain digits would be long.
export function formatNumber(value: JsonNumber | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value.replace("-", MINUS).replace("Infinity", "∞");
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return grouped(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replace("e+", "e").replaceAll("-", MINUS);
}

// Two numbers with as many digits as it takes to tell them apart.
export function formatPair(a: JsonNumber, b: JsonNumber): [string, string] {
  for (let digits = 4; digits <= 17 && typeof a === "number" && typeof b === "number" && a !== b; digits++) {
    const [left, right] = [a, b].map((value) => String(Number(value.toPrecision(digits)))) as [
      string,
      string,
    ];
    if (left !== right) return [left.replaceAll("-", MINUS), right.replaceAll("-", MINUS)];
  }
  return [formatNumber(a), formatNumber(b)];
}

// Numbers of an axis, likewise.
export function formatTicks(values: readonly number[]): string[] {
  let texts = values.map(formatNumber);
  for (let digits = 5; digits <= 15 && new Set(texts).size < values.length; digits++) {
    texts = values.map((value) => String(Number(value.toPrecision(digits))).replaceAll("-", MINUS));
  }
  return texts;
}

// Whole numbers with thousands apart.
export function grouped(value: number): string {
  return value.toLocaleString("en-US").replace("-", MINUS);
}

export function formatBytes(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

export function formatDuration(secs: number): string {
  if (secs === 0) return "0 s";
  if (secs < 0.001) return `${(secs * 1e6).toFixed(0)} µs`;
  if (secs < 1) return `${(secs * 1000).toFixed(0)} ms`;
  if (secs < 60) return `${secs < 10 ? secs.toFixed(1) : Math.round(secs)} s`;
  const minutes = Math.floor(secs / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(secs % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function formatTime(unixSecs: number | null): string {
  if (unixSecs === null) return "–";
  return new Date(unixSecs * 1000).toLocaleString("sv-SE");
}

export function plural(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}
