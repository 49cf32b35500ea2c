// Step numbers below a heat map.

import { grouped } from "../model/number";
import type { StepAxis } from "../model/step_axis";
import { wholeTicks } from "../model/ticks";
import type { ViewWindow } from "../model/view_window";

const LEAST_DISTANCE = 76;

export function StepTicks({ axis, window, width }: { axis: StepAxis; window: ViewWindow; width: number }) {
  return (
    <div class="step-ticks" aria-hidden="true">
      {stepTicks(axis, window, width).map(({ step, x, text }) => (
        <span key={step} style={{ left: x }}>
          {text}
        </span>
      ))}
    </div>
  );
}

interface StepTick {
  step: number;
  x: number;
  text: string;
}

// Round steps with their places in pixels, never too close together. The first one says what they are.
export function stepTicks(axis: StepAxis, window: ViewWindow, width: number): StepTick[] {
  if (axis.columns === 0) return [];
  const most = Math.max(2, Math.floor(width / LEAST_DISTANCE));
  const low = axis.stepAt(window.x0);
  const high = Math.min(axis.lastStep, axis.stepAt(window.x1 - 1e-6));
  const wide = width / (window.x1 - window.x0);
  const ticks: StepTick[] = [];
  for (const step of wholeTicks(low, high, most)) {
    const x = (axis.at(step) - window.x0) * wide;
    const last = ticks.at(-1);
    if (x < 0 || (last && x - last.x < LEAST_DISTANCE / 2)) continue;
    ticks.push({ step, x, text: last ? grouped(step) : `step ${grouped(step)}` });
  }
  return ticks;
}
