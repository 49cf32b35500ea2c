import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { inlined } from "./single_file";

const html =
  '<html><head><script type="module" crossorigin src="/a.js"></script><link rel="stylesheet" href="/a.css"></head></html>';

describe("inlined", () => {
  it("leaves no reference to another file", () => {
    const page = inlined(html, "run()", "p{color:red}");
    expect(page).not.toMatch(/src=|href=/);
    expect(page).toContain('<script type="module">run()</script>');
    expect(page).toContain("<style>p{color:red}</style>");
  });

  it("allows exactly its own script and style", () => {
    const page = inlined(html, "run()", "p{}");
    const policy = /content="([^"]*)"/.exec(page)?.[1] ?? "";
    const hash = (text: string) => createHash("sha256").update(text).digest("base64");
    expect(policy).toContain(`script-src 'sha256-${hash("run()")}'`);
    expect(policy).toContain(`style-src 'sha256-${hash("p{}")}'`);
    expect(policy).not.toContain("unsafe");
  });

  it("keeps the script whole when it speaks of end tags, and leaves $ signs alone", () => {
    const page = inlined(html, 'let a = "</script><!--", b = "$&$1"', "");
    expect(page.match(/<\/script>/g)).toHaveLength(1);
    expect(page).not.toContain("<!--");
    expect(page).toContain('"$&$1"');
  });
});
