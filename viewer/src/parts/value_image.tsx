// Elements as an image, a square for each. Values of both signs are shown around zero.

import { useLayoutEffect, useRef } from "preact/hooks";
import { ALARM, diverging, pack, sequential } from "../model/colour_map";
import { type ColourScale, paletteIndex } from "../model/colour_scale";
import { theme } from "../state/theme";
import { saveCanvas } from "./save";

interface Props {
  rows: readonly (readonly (number | null)[])[];
  low: number | null;
  high: number | null;
  name: string;
}

const LARGEST = 360;
const MOST_ZOOM = 16;

export function ValueImage({ rows, low, high, name }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, height] = [rows[0]?.length ?? 0, rows.length];
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context) return;
    canvas.current.width = width;
    canvas.current.height = height;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const isSigned = (low ?? 0) < 0 && (high ?? 0) > 0;
    const end = Math.max(Math.abs(low ?? 0), Math.abs(high ?? 0));
    const scale: ColourScale = {
      kind: isSigned ? "around_zero" : "linear",
      low: isSigned ? -end : (low ?? 0),
      high: isSigned ? end : (high ?? 0),
      isCutLow: false,
      isCutHigh: false,
    };
    const palette = isSigned ? diverging[theme.value] : sequential;
    for (const [y, row] of rows.entries()) {
      for (const [x, value] of row.entries()) {
        const number = typeof value === "boolean" ? Number(value) : value;
        const hasColour = typeof number === "number" && Number.isFinite(number);
        pixels[y * width + x] = hasColour ? palette[paletteIndex(scale, number)]! : pack(ALARM);
      }
    }
    context.putImageData(image, 0, 0);
  }, [rows, low, high, theme.value]);
  const zoom = Math.min(MOST_ZOOM, LARGEST / Math.max(width, height));
  return (
    <figure class="value-image">
      <canvas
        ref={canvas}
        style={{ width: width * zoom, height: Math.max(4, height * zoom) }}
        role="img"
        aria-label={`${name} as an image of ${width} by ${height} elements`}
      />
      <figcaption>
        <button type="button" class="link" onClick={() => canvas.current && saveCanvas(canvas.current, name)}>
          PNG
        </button>
      </figcaption>
    </figure>
  );
}
