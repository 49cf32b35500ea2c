// What the colours of a heat map mean.

import { ALARM, css, type Palette, pack, SIZE } from "../model/colour_map";
import { type ColourScale, valueAt } from "../model/colour_scale";
import { formatNumber } from "../model/number";

const TICKS = [0, 0.25, 0.5, 0.75, 1];

export function Legend({ scale, palette, label }: { scale: ColourScale; palette: Palette; label: string }) {
  const stops = Array.from({ length: 17 }, (_, i) => css(palette[Math.round((i / 16) * (SIZE - 1))]!));
  const text = (at: number) => {
    const sign = at === 0 && scale.isCutLow ? "≤ " : at === 1 && scale.isCutHigh ? "≥ " : "";
    return sign + formatNumber(valueAt(scale, at));
  };
  const ticks = scale.low === scale.high ? [0.5] : TICKS;
  return (
    <figure
      class="legend"
      aria-label={`Colours: ${label}, ${scale.kind === "log" ? "logarithmic" : "linear"}, from ${text(0)} to ${text(1)}`}
    >
      <figcaption>{label}</figcaption>
      <div class="legend-scale" aria-hidden="true">
        <div class="legend-bar" style={{ background: `linear-gradient(to right, ${stops.join(",")})` }} />
        <div class="legend-ticks">
          {ticks.map((at) => (
            <span key={at} style={{ left: `${at * 100}%` }}>
              {text(at)}
            </span>
          ))}
        </div>
      </div>
      <div class="legend-key">
        <i style={{ background: css(pack(ALARM)) }} />
        NaN or ∞
      </div>
      <div class="legend-key">
        <i class="legend-none" />
        not recorded
      </div>
    </figure>
  );
}
