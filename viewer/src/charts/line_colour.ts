// Colours of lines: told apart with every kind of colour vision (after Okabe and Ito), on dark and on light.

import type { Theme } from "../state/theme";

const COLOURS: Record<Theme, readonly string[]> = {
  light: ["#0b62a8", "#c2410c", "#00785a", "#9c4f86", "#8a6d00", "#4a4a46", "#2b8cbe", "#7f1d1d"],
  dark: ["#6bb7f0", "#f79256", "#3ecfa4", "#e29ac8", "#e5cf55", "#c9c9c4", "#9ad0ff", "#ff9d9d"],
};

export function lineColour(index: number, theme: Theme): string {
  const colours = COLOURS[theme];
  return colours[index % colours.length]!;
}
