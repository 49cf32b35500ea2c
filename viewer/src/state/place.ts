// What the page shows, as it stands in the address behind `#`: a view, and parameters that differ from their
// defaults. Whoever opens the same address sees the same.

import { signal } from "@preact/signals";
import type { Mode } from "../api/types";

export const VIEWS = ["overview", "metrics", "tensor", "findings", "compare", "facts"] as const;
export type View = (typeof VIEWS)[number];
export type Channel = "mean" | "max" | "min";
export type ColourScale = "auto" | "log" | "linear";

export interface Place {
  view: View;
  // Ids of runs; null means that the page chooses.
  run: string | null;
  other: string | null;
  // The heat map.
  statistic: string | null;
  role: string | null;
  mode: Mode;
  channel: Channel;
  scale: ColourScale;
  from: number | null;
  to: number | null;
  first: number | null;
  count: number | null;
  collapsed: string[];
  difference: "relative" | "difference";
  // One tensor.
  tensor: string | null;
  step: number | null;
  slice: string;
  workers: boolean;
  distribution: "ridges" | "map";
  // Charts.
  overlay: string[];
  smooth: number;
  x: "step" | "time";
  log: boolean;
  find: string;
  // Findings: the rank that is open.
  rank: number | null;
}

interface Field<T> {
  initial: T;
  read(texts: string[]): T;
  write(value: T): string[];
}

const text: Field<string | null> = {
  initial: null,
  read: (texts) => texts[0] || null,
  write: (value) => (value === null ? [] : [value]),
};
const plain: Field<string> = { initial: "", read: (texts) => texts[0] ?? "", write: (value) => [value] };
const list: Field<string[]> = {
  initial: [],
  read: (texts) => texts.filter(Boolean),
  write: (value) => value,
};
const flag: Field<boolean> = {
  initial: false,
  read: (texts) => texts[0] === "1",
  write: (value) => [value ? "1" : "0"],
};
const whole: Field<number | null> = {
  initial: null,
  read: (texts) => (/^\d{1,15}$/.test(texts[0] ?? "") ? Number(texts[0]) : null),
  write: (value) => (value === null ? [] : [String(Math.round(value))]),
};
function oneOf<T extends string>(...choices: readonly [T, ...T[]]): Field<T> {
  return {
    initial: choices[0],
    read: (texts) => choices.find((choice) => choice === texts[0]) ?? choices[0],
    write: (value) => [value],
  };
}
const share: Field<number> = {
  initial: 0,
  read: (texts) => Math.min(0.99, Math.max(0, Number(texts[0] ?? 0) || 0)),
  write: (value) => [String(value)],
};

type Fields = { [K in keyof Omit<Place, "view">]: Field<Place[K]> };
const FIELDS: Fields = {
  run: text,
  other: text,
  statistic: text,
  role: text,
  mode: oneOf<Mode>("GLOBAL", "TRAIN", "EVAL", "PREDICT"),
  channel: oneOf<Channel>("mean", "max", "min"),
  scale: oneOf<ColourScale>("auto", "log", "linear"),
  from: whole,
  to: whole,
  first: whole,
  count: whole,
  collapsed: list,
  difference: oneOf<Place["difference"]>("relative", "difference"),
  tensor: text,
  step: whole,
  slice: plain,
  workers: flag,
  distribution: oneOf<Place["distribution"]>("ridges", "map"),
  overlay: list,
  smooth: share,
  x: oneOf<Place["x"]>("step", "time"),
  log: flag,
  find: plain,
  rank: whole,
};

export function parsePlace(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const place = { view: VIEWS.find((view) => view === path) ?? "overview" } as Record<string, unknown>;
  for (const [name, field] of Object.entries(FIELDS)) place[name] = field.read(parameters.getAll(name));
  return place as unknown as Place;
}

export function formatPlace(place: Place): string {
  const parameters = new URLSearchParams();
  for (const [name, field] of Object.entries(FIELDS) as [keyof Fields, Field<unknown>][]) {
    const value = place[name];
    if (JSON.stringify(value) === JSON.stringify(field.initial)) continue;
    for (const item of field.write(value)) parameters.append(name, item);
  }
  const query = parameters.toString();
  return `#${place.view}${query && `?${query}`}`;
}

const inBrowser = typeof window !== "undefined";
export const place = signal<Place>(parsePlace(inBrowser ? window.location.hash : ""));

// The address of the place that differs from the present one by `change`.
export function linkTo(change: Partial<Place>): string {
  return formatPlace({ ...place.value, ...change });
}

// Goes there as a link would: the way back is kept.
export function go(change: Partial<Place>): void {
  move(change, "pushState");
}

// Changes a detail of the view, without a new entry in the history.
export function adjust(change: Partial<Place>): void {
  move(change, "replaceState");
}

function move(change: Partial<Place>, how: "pushState" | "replaceState"): void {
  const next = { ...place.value, ...change };
  const hash = formatPlace(next);
  place.value = next;
  if (hash !== window.location.hash) window.history[how](null, "", hash);
}

// Follows the browser's back and forward, and takes the token out of the address: its cookie is set.
export function followAddress(): void {
  const address = new URL(window.location.href);
  if (address.searchParams.has("token")) {
    address.searchParams.delete("token");
    window.history.replaceState(null, "", address);
  }
  const read = () => {
    place.value = parsePlace(window.location.hash);
  };
  window.addEventListener("popstate", read);
  window.addEventListener("hashchange", read);
}
