// Puts script and style into the one HTML file, with a content security policy that allows exactly these two.

import { createHash } from "node:crypto";
import type { Plugin } from "vite";

export function singleFile(): Plugin {
  return {
    name: "single-file",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("The bundle has no index.html.");
      let script = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") script += part.code;
        else if (name.endsWith(".css")) style += String(part.source);
        else continue;
        delete bundle[name];
      }
      page.source = inlined(String(page.source), script, style);
    },
  };
}

// The page with `script` and `style` inside instead of its references to files.
export function inlined(html: string, script: string, style: string): string {
  const code = withoutEndTags(script.trim());
  const sheet = style.trim();
  if (/<\/style/i.test(sheet)) throw new Error("The style sheet would end its element.");
  const policy = [
    "default-src 'none'",
    `script-src '${hash(code)}'`,
    `style-src '${hash(sheet)}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const bare = html
    .replace(/\s*<script[^>]*\ssrc="[^"]*"[^>]*><\/script>/g, "")
    .replace(/\s*<link[^>]*rel="stylesheet"[^>]*>/g, "");
  return bare
    .replace("<head>", () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace("</head>", () => `<style>${sheet}</style>\n<script type="module">${code}</script>\n</head>`);
}

// A script element ends at the first `</script`, wherever it stands, and `<!--` changes how it is read.
function withoutEndTags(script: string): string {
  return script.replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");
}

function hash(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
