// Runs all tests of this folder, or those named on the command line, one file after the other.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const here = import.meta.dirname;
const named = process.argv.slice(2);
const files = readdirSync(here)
  .filter((name) => name.endsWith("_test.mjs"))
  .filter((name) => named.length === 0 || named.some((part) => name.includes(part)))
  .map((name) => join(here, name));

const counts = { passed: 0, failed: 0 };
const stream = run({ files, concurrency: 1 });
const isTest = (event) => event.details?.type !== "suite";
stream.on("test:pass", (event) => {
  if (isTest(event)) counts.passed += 1;
});
stream.on("test:fail", (event) => {
  if (isTest(event)) counts.failed += 1;
});
stream.compose(spec).pipe(process.stdout);
stream.on("end", () => {
  process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed\n`);
  process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
});
