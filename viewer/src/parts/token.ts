// Colours and fonts of the style sheet, for canvases.

export function token(name: `--${string}`): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
