// Addresses of questions in the one form that servers and reports know:
// parameters sorted by name, then by value, without those that have their default value.

export type Parameter = string | number | readonly (string | number)[] | null | undefined;

const DEFAULTS: Record<string, string> = {
  mode: "GLOBAL",
  first: "0",
  rows: "1000",
  columns: "1000",
  channels: "mean",
  points: "1000",
  steps: "50",
  bins: "64",
  as: "relative",
  absolute: "0",
  relative: "0",
};

// Null, undefined and empty texts are left out; lists become repeated parameters.
export function address(path: string, parameters: Record<string, Parameter> = {}): string {
  const pairs: [string, string][] = [];
  for (const [name, given] of Object.entries(parameters)) {
    for (const value of Array.isArray(given) ? given : [given]) {
      const text = value === null || value === undefined ? "" : String(value);
      if (text !== "" && DEFAULTS[name] !== text) pairs.push([name, text]);
    }
  }
  pairs.sort((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]));
  const query = pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  return query.length === 0 ? path : `${path}?${query.join("&")}`;
}

export function runPath(run: string, rest = ""): string {
  return `/api/runs/${encodeURIComponent(run)}${rest && `/${rest}`}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
