import { describe, expect, it } from "vitest";
import { parseMarkdown } from "./markdown";

describe("parseMarkdown", () => {
  it("joins lines of a paragraph and keeps code apart", () => {
    expect(parseMarkdown("The `l2` of\nit.\n\nNext.")).toEqual([
      {
        kind: "paragraph",
        spans: [
          { kind: "text", text: "The " },
          { kind: "code", text: "l2" },
          { kind: "text", text: " of" },
          { kind: "text", text: " " },
          { kind: "text", text: "it." },
        ],
      },
      { kind: "paragraph", spans: [{ kind: "text", text: "Next." }] },
    ]);
  });

  it("reads lists, code blocks and the text of links", () => {
    const blocks = parseMarkdown("- one\n- [two](x.md)\n\n```python\na = 1\n```\n");
    expect(blocks.map((block) => block.kind)).toEqual(["list", "code"]);
    expect(blocks[0]).toMatchObject({ items: [[{ text: "one" }], [{ text: "two" }]] });
    expect(blocks[1]).toMatchObject({ text: "a = 1" });
  });

  it("leaves HTML and stars of products as text", () => {
    expect(parseMarkdown("a * b * <b>c</b>")).toEqual([
      { kind: "paragraph", spans: [{ kind: "text", text: "a * b * <b>c</b>" }] },
    ]);
  });
});
