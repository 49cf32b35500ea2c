// Sentences with names of strangers inside: signs that would turn the direction of all text behind them, or that
// cannot be seen, become visible.

const HIDDEN = /[\p{Cc}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;

export function plainText(text: string): string {
  return text.replace(HIDDEN, (sign) => (sign === "\n" ? sign : "\ufffd"));
}
