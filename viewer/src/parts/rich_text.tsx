// Markdown of rules as elements.

import { parseMarkdown, type Span } from "../model/markdown";

export function RichText({ text }: { text: string }) {
  return (
    <div class="rich-text">
      {parseMarkdown(text).map((block, at) => {
        if (block.kind === "code") {
          return <pre key={at}>{block.text}</pre>;
        }
        if (block.kind === "list") {
          return (
            <ul key={at}>
              {block.items.map((spans, item) => (
                <li key={item}>
                  <Spans spans={spans} />
                </li>
              ))}
            </ul>
          );
        }
        return (
          <p key={at}>
            <Spans spans={block.spans} />
          </p>
        );
      })}
    </div>
  );
}

function Spans({ spans }: { spans: readonly Span[] }) {
  return (
    <>
      {spans.map((span, at) => {
        if (span.kind === "code") return <code key={at}>{span.text}</code>;
        if (span.kind === "strong") return <strong key={at}>{span.text}</strong>;
        if (span.kind === "emphasis") return <em key={at}>{span.text}</em>;
        return span.text;
      })}
    </>
  );
}
