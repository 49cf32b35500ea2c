// The painted cells of a heat map, with lines between modules and marks over them.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { RowLayout } from "../model/row_layout";
import type { StepAxis } from "../model/step_axis";
import type { ViewWindow } from "../model/view_window";
import { token } from "../parts/token";
import { theme } from "../state/theme";
import type { Layer } from "./layer";
import { drawMarks, markColours, type PlacedMark } from "./mark";
import { paint } from "./painter";

interface Props {
  layers: readonly Layer[];
  marks: readonly PlacedMark[];
  window: ViewWindow;
  axis: StepAxis;
  layout: RowLayout | null;
  size: { width: number; height: number };
}

export function Canvas(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const image = useRef<ImageData | null>(null);
  const { width, height } = props.size;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || width === 0) return;
    const ratio = devicePixelRatio;
    const [wide, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.current.width !== wide || canvas.current.height !== tall) {
      canvas.current.width = wide;
      canvas.current.height = tall;
      image.current = null;
    }
    image.current ??= context.createImageData(wide, tall);
    draw(context, image.current, props, ratio);
  }, [props.layers, props.marks, props.window, width, height, theme.value]);
  return <canvas ref={canvas} style={{ width, height }} />;
}

// Everything of the plot, in a context of `size` times `ratio` pixels.
export function draw(context: CanvasRenderingContext2D, image: ImageData, props: Props, ratio: number): void {
  const { window, size, layout } = props;
  paint(image, props.layers, window, props.axis);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.putImageData(image, 0, 0);
  context.scale(ratio, ratio);
  const tall = size.height / (window.y1 - window.y0);
  context.fillStyle = token("--panel");
  for (const span of layout?.spans ?? []) {
    const y = (span.start - window.y0) * tall;
    if (y > 0 && y < size.height && (span.end - span.start) * tall > 4)
      context.fillRect(0, y - 1, size.width, 1);
  }
  drawMarks(context, props.marks, window, size, markColours());
}
