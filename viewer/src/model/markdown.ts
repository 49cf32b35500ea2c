// The little Markdown that texts of rules have, as a tree for components: no HTML is ever made of it.

export interface Span {
  kind: "text" | "code" | "strong" | "emphasis";
  text: string;
}

export type Block =
  | { kind: "paragraph"; spans: Span[] }
  | { kind: "list"; items: Span[][] }
  | { kind: "code"; text: string };

export function parseMarkdown(text: string): Block[] {
  const blocks: Block[] = [];
  const parts = text.split(/^```.*$/m);
  for (const [at, part] of parts.entries()) {
    if (at % 2 === 1) blocks.push({ kind: "code", text: part.replace(/^\n|\n$/g, "") });
    else for (const piece of part.split(/\n\s*\n/)) blocks.push(...paragraphs(piece));
  }
  return blocks;
}

function paragraphs(piece: string): Block[] {
  const blocks: Block[] = [];
  for (const line of piece.split("\n")) {
    if (line.trim() === "") continue;
    const item = /^\s*(?:[-*]|\d+\.)\s+(.*)$/.exec(line);
    const last = blocks.at(-1);
    if (item) {
      const spans = parseSpans(item[1]!);
      if (last?.kind === "list") last.items.push(spans);
      else blocks.push({ kind: "list", items: [spans] });
    } else {
      const spans = parseSpans(line.trim());
      const open =
        last?.kind === "list" ? last.items.at(-1)! : last?.kind === "paragraph" ? last.spans : null;
      if (open) open.push({ kind: "text", text: " " }, ...spans);
      else blocks.push({ kind: "paragraph", spans });
    }
  }
  return blocks;
}

function parseSpans(text: string): Span[] {
  const spans: Span[] = [];
  let rest = 0;
  for (const match of text.matchAll(/`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\([^)]*\)/g)) {
    if (match.index > rest) spans.push({ kind: "text", text: text.slice(rest, match.index) });
    const [all, code, strong, emphasis, link] = match;
    if (code !== undefined) spans.push({ kind: "code", text: code });
    else if (strong !== undefined) spans.push({ kind: "strong", text: strong });
    else if (emphasis !== undefined) spans.push({ kind: "emphasis", text: emphasis });
    else if (link !== undefined) spans.push(...parseSpans(link));
    rest = match.index + all.length;
  }
  if (rest < text.length) spans.push({ kind: "text", text: text.slice(rest) });
  return spans;
}
