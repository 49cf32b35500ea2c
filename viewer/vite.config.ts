import { defineConfig } from "vitest/config";
import { singleFile } from "./build/single_file.ts";

export default defineConfig({
  plugins: [singleFile()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
  },
  test: { include: ["src/**/*_test.ts", "build/**/*_test.ts"] },
});
