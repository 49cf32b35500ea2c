// The rows of a heat map: chosen tensors in the order of the model, collapsed modules as one row each.
// A position counts tensors of the choice, a row counts what is on the screen.

import type { Catalogue, Module, Tensor } from "../api/types";

export interface Row {
  // Positions [first, end); one tensor unless the row is a collapsed module.
  first: number;
  end: number;
  // The collapsed module, as index in the catalogue.
  module: number | null;
}

// A module with its rows [start, end). Modules that hold the same rows as their only child are one with it.
export interface ModuleSpan {
  path: string;
  // Its path below the span that it lies in.
  label: string;
  start: number;
  end: number;
  isCollapsed: boolean;
  children: ModuleSpan[];
}

// A module that has room for so many names shows those of some of its children.
const MANY_NAMES = 6;
// So many modules make an outline.
const SEVERAL = 3;

export interface RowLayout {
  tensors: Tensor[];
  rows: Row[];
  rowOfPosition: Uint32Array;
  spans: ModuleSpan[];
  isCollapsed: boolean;
}

// `ids` that the catalogue does not know yet are shown by number until it does.
export function layoutRows(
  ids: ArrayLike<number>,
  catalogue: Catalogue,
  collapsed: readonly string[],
): RowLayout {
  const byId = new Map(catalogue.tensors.map((tensor) => [tensor.id, tensor]));
  const tensors = Array.from(ids, (id) => byId.get(id) ?? unknownTensor(id));
  const top = topmostCollapsed(catalogue.modules, collapsed);
  const rows: Row[] = [];
  const rowOfPosition = new Uint32Array(tensors.length);
  for (const [at, tensor] of tensors.entries()) {
    const module = top[tensor.module] ?? null;
    const last = rows.at(-1);
    if (last && module !== null && last.module === module) last.end = at + 1;
    else rows.push({ first: at, end: at + 1, module });
    rowOfPosition[at] = rows.length - 1;
  }
  return {
    tensors,
    rows,
    rowOfPosition,
    spans: spansOf(tensors, rowOfPosition, catalogue.modules, top),
    isCollapsed: rows.some((row) => row.module !== null),
  };
}

// The name of a row: of its tensor, or of its module with how many tensors it holds.
export function rowLabel(layout: RowLayout, modules: readonly Module[], row: number): string {
  const { first, end, module } = layout.rows[row]!;
  if (module === null) return layout.tensors[first]!.name;
  return `${modules[module]!.path} (${end - first})`;
}

function unknownTensor(id: number): Tensor {
  return {
    id,
    name: `tensor ${id}`,
    module: 0,
    role: "other",
    collections: [],
    dtype: null,
    shape: null,
    statistics: [],
    has_value: false,
    modes: [],
  };
}

// By module: the outermost collapsed one that it lies in. Parents stand before their children.
function topmostCollapsed(modules: readonly Module[], collapsed: readonly string[]): (number | null)[] {
  const paths = new Set(collapsed);
  const depths = depthsOf(modules);
  const top: (number | null)[] = [];
  for (const [at, module] of modules.entries()) {
    const above = module.parent === null ? null : (top[module.parent] ?? null);
    const isCollapsed = paths.has(module.path) || paths.has(allOfDepth(depths[at]!));
    top.push(above ?? (module.parent !== null && isCollapsed ? at : null));
  }
  return top;
}

// Stands for all modules of a depth among collapsed paths, so that addresses stay short.
export function allOfDepth(depth: number): string {
  return `*${depth}`;
}

function depthsOf(modules: readonly Module[]): number[] {
  const depths: number[] = [];
  for (const module of modules) depths.push(module.parent === null ? 0 : depths[module.parent]! + 1);
  return depths;
}

// The collapsed paths after one module was opened or collapsed.
export function toggled(collapsed: readonly string[], path: string, modules: readonly Module[]): string[] {
  const depths = depthsOf(modules);
  const single = new Set(
    collapsed.flatMap((given) => {
      const all = modules.filter((_, at) => given === allOfDepth(depths[at]!)).map((module) => module.path);
      return all.length > 0 ? all : [given];
    }),
  );
  if (!collapsed.includes(path) && !single.has(path)) return [...collapsed, path];
  single.delete(path);
  return [...single];
}

function spansOf(
  tensors: readonly Tensor[],
  rowOfPosition: Uint32Array,
  modules: readonly Module[],
  top: readonly (number | null)[],
): ModuleSpan[] {
  const start = new Int32Array(modules.length).fill(-1);
  const end = new Int32Array(modules.length);
  for (const [at, tensor] of tensors.entries()) {
    const row = rowOfPosition[at]!;
    for (let m: number | null = tensor.module; m !== null; m = modules[m]?.parent ?? null) {
      if (start[m] === -1) start[m] = row;
      end[m] = row + 1;
    }
  }
  const roots: ModuleSpan[] = [];
  const span: (ModuleSpan | null)[] = [];
  for (const [at, module] of modules.entries()) {
    const parent = module.parent === null ? null : (span[module.parent] ?? null);
    const isHidden = top[at] !== null && top[at] !== at;
    if (module.parent === null || start[at] === -1 || isHidden) {
      span.push(null);
      continue;
    }
    const made: ModuleSpan = {
      path: module.path,
      label: parent ? module.path.slice(parent.path.length).replace(/^[./]/, "") : module.path,
      start: start[at]!,
      end: end[at]!,
      isCollapsed: top[at] === at,
      children: [],
    };
    span.push(made);
    (parent?.children ?? roots).push(made);
  }
  return roots.map(merged);
}

function merged(span: ModuleSpan): ModuleSpan {
  const only = span.children[0];
  if (span.children.length === 1 && only && only.start === span.start && only.end === span.end) {
    return merged({ ...only, label: `${span.label}.${only.label}` });
  }
  return { ...span, children: span.children.map(merged) };
}

// Spans to name on the screen, where a name is `tall` rows high: the innermost ones for which all siblings have
// room, and of very many siblings some.
export function namedSpans(spans: readonly ModuleSpan[], tall: number): ModuleSpan[] {
  const named = spans.flatMap((span) => {
    const inner = span.children;
    if (inner.length > 0 && inner.every((child) => child.end - child.start >= tall))
      return namedSpans(inner, tall);
    const isMany = inner.length > 1 && span.end - span.start >= MANY_NAMES * tall;
    return isMany ? apart(inner, 2 * tall) : [span];
  });
  return apart(named, tall);
}

// Those whose middles are at least `distance` rows apart.
function apart(spans: readonly ModuleSpan[], distance: number): ModuleSpan[] {
  const middle = (span: ModuleSpan) => (span.start + span.end) / 2;
  let last = Number.NEGATIVE_INFINITY;
  return spans.filter((span) => {
    if (middle(span) - last < distance) return false;
    last = middle(span);
    return true;
  });
}

// What to collapse to see the model's outline: the outermost depth with several modules.
export function outline(layout: RowLayout, modules: readonly Module[]): string[] {
  const depths = depthsOf(modules);
  const counts: number[] = [];
  const seen = new Set<number>();
  for (const tensor of layout.tensors) {
    for (let m: number | null = tensor.module; m !== null && !seen.has(m); m = modules[m]?.parent ?? null) {
      seen.add(m);
      counts[depths[m]!] = (counts[depths[m]!] ?? 0) + 1;
    }
  }
  const several = counts.findIndex((count) => count >= SEVERAL);
  const depth = several > 0 ? several : counts.length - 1;
  return depth > 0 ? [allOfDepth(depth)] : [];
}
