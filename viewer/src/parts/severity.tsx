// How bad a finding is: a sign and a word, never the colour alone.

import type { Severity } from "../api/types";

const SIGN: Record<Severity, string> = { error: "●", warning: "▲", info: "■" };

export function SeverityBadge({ severity }: { severity: Severity }) {
  return (
    <span class={`severity severity-${severity}`}>
      <span aria-hidden="true">{SIGN[severity]}</span> {severity}
    </span>
  );
}
