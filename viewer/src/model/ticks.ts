// Round numbers for an axis.

// At most `most` whole numbers in [low, high], a 1, 2 or 5 of a power of ten apart.
export function wholeTicks(low: number, high: number, most: number): number[] {
  if (!(high >= low) || most < 1) return [];
  let step = 1;
  for (const factor of endlessFactors()) {
    step = factor;
    if (Math.floor(high / step) - Math.ceil(low / step) < most) break;
  }
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

function* endlessFactors(): Generator<number> {
  for (let power = 1; ; power *= 10) yield* [power, 2 * power, 5 * power];
}
