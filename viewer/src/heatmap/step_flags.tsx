// Flags above a heat map at the steps at which something began.

import type { Severity } from "../api/types";
import { grouped } from "../model/number";
import type { StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";

export interface StepFlag {
  step: number;
  severity: Severity;
  text: string;
  href: string | null;
}

interface Props {
  flags: readonly StepFlag[];
  axis: StepAxis;
  window: ViewWindow;
  width: number;
}

const SIGN: Record<Severity, string> = { error: "●", warning: "▲", info: "■" };
const ORDER: readonly Severity[] = ["info", "warning", "error"];
const MOST = 40;

export function StepFlags({ flags, axis, window, width }: Props) {
  const wide = width / (window.x1 - window.x0);
  // The worst is drawn last, over the others of its step.
  const ordered = flags.slice(0, MOST).sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const shown = ordered.flatMap((flag) => {
    const x = (axis.at(flag.step) + 0.5 - window.x0) * wide;
    return x >= 0 && x <= width ? [{ ...flag, x }] : [];
  });
  return (
    <div class="step-flags">
      {shown.map(({ step, severity, text, href, x }) => {
        const name = `${text}, since step ${grouped(step)}`;
        const style = { left: Math.min(width - 14, Math.max(0, x - 7)) };
        return href ? (
          <a
            key={`${step} ${text}`}
            class={`severity-${severity}`}
            style={style}
            href={href}
            title={name}
            aria-label={name}
          >
            {SIGN[severity]}
          </a>
        ) : (
          <span key={`${step} ${text}`} class={`severity-${severity}`} style={style} title={name}>
            {SIGN[severity]}
          </span>
        );
      })}
    </div>
  );
}
