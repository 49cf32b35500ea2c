// Colour maps of 256 entries. Their lightness rises (or, from the middle, falls on both sides) evenly, and hues
// go from blue to yellow or to orange, so that they read the same with every kind of colour vision and in grey.
// Mixed in OKLab from a few anchors.

export type Rgb = readonly [number, number, number];

const SEQUENTIAL = ["#180f3e", "#27327a", "#24618e", "#1f8d8c", "#46b478", "#a5d456", "#f8ec5a"];
const DIVERGING = {
  light: ["#0b3c7d", "#3c7dc4", "#a3c8ec", "#f4f3f0", "#f5bd84", "#d9702a", "#7f2a04"],
  dark: ["#9fd0ff", "#4b93dc", "#264b78", "#232427", "#7a4720", "#de8a3d", "#ffd9a8"],
};
export const SIZE = 256;

// Packed as ImageData wants it on little-endian machines: 0xAABBGGRR.
export type Palette = Uint32Array;

export const sequential: Palette = palette(SEQUENTIAL);
export const diverging: Record<"light" | "dark", Palette> = {
  light: palette(DIVERGING.light),
  dark: palette(DIVERGING.dark),
};
// Not finite: outside of the maps in hue, for those who see it, and always in the legend.
export const ALARM: Rgb = [226, 30, 98];

export function pack([red, green, blue]: Rgb): number {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export function unpack(colour: number): Rgb {
  return [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
}

export function css(colour: number): string {
  return `rgb(${unpack(colour).join(" ")})`;
}

// OKLab's L of a colour, 0 to 1.
export function lightness(rgb: Rgb): number {
  return toLab(rgb)[0];
}

function palette(anchors: readonly string[]): Palette {
  const labs = anchors.map((hex) => toLab(fromHex(hex)));
  const colours = new Uint32Array(SIZE);
  for (let i = 0; i < SIZE; i++) {
    const at = (i / (SIZE - 1)) * (labs.length - 1);
    const below = Math.min(Math.floor(at), labs.length - 2);
    const share = at - below;
    const [from, to] = [labs[below]!, labs[below + 1]!];
    colours[i] = pack(
      fromLab([0, 1, 2].map((k) => from[k]! * (1 - share) + to[k]! * share) as unknown as Rgb),
    );
  }
  return colours;
}

function fromHex(hex: string): Rgb {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb;
}

function toLab(rgb: Rgb): Rgb {
  const [r, g, b] = rgb.map((byte) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromLab([L, A, B]: Rgb): Rgb {
  const l = (L + 0.3963377774 * A + 0.2158037573 * B) ** 3;
  const m = (L - 0.1055613458 * A - 0.0638541728 * B) ** 3;
  const s = (L - 0.0894841775 * A - 1.291485548 * B) ** 3;
  const linear: Rgb = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((c) => {
    const companded = c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055;
    return Math.round(Math.min(1, Math.max(0, companded)) * 255);
  }) as unknown as Rgb;
}
