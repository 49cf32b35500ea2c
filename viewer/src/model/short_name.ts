// Names without what all of them share, for places with little room.

const PART = /[^./]*[./]?/g;

// By name: what is left without the parts that all names begin and end with. Never empty.
export function shortNames(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const parts = names.map((name) => (name.match(PART) ?? []).filter(Boolean));
  const least = Math.min(...parts.map((list) => list.length)) - 1;
  const first = parts[0] ?? [];
  let head = 0;
  while (head < least && parts.every((list) => list[head] === first[head])) head += 1;
  let tail = 0;
  while (tail < least - head && parts.every((list) => list.at(-1 - tail) === first.at(-1 - tail))) tail += 1;
  return parts.map((list) =>
    list
      .slice(head, list.length - tail)
      .join("")
      .replace(/[./]$/, ""),
  );
}
