// The horizontal axis of a heat map. A coordinate counts columns of the block that shows the whole run,
// so that every saved step has the same width, however far apart the steps are.

export class StepAxis {
  // First steps of the columns, ascending, and the last step of all.
  constructor(
    private readonly firstSteps: readonly number[],
    readonly lastStep: number,
  ) {}

  get columns(): number {
    return this.firstSteps.length;
  }

  // The coordinate at which a step begins; steps between two columns lie between them.
  at(step: number): number {
    const column = this.columnOf(step);
    if (column < 0) return 0;
    const first = this.firstSteps[column]!;
    const next = this.firstSteps[column + 1] ?? this.lastStep + 1;
    return column + Math.min(1, (step - first) / Math.max(1, next - first));
  }

  // The step at a coordinate.
  stepAt(coordinate: number): number {
    const column = Math.min(this.columns - 1, Math.max(0, Math.floor(coordinate)));
    const first = this.firstSteps[column] ?? 0;
    const next = this.firstSteps[column + 1] ?? this.lastStep + 1;
    return first + Math.floor((coordinate - column) * (next - first) + 1e-6);
  }

  // The last column that begins at `step` or before; -1 if all begin later.
  columnOf(step: number): number {
    return lastAtMost(this.firstSteps, step);
  }
}

export function lastAtMost(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
