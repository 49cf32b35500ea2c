// What people need who do not see the page, or not its colours: names, contrast, order.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { openPage } from "./chromium.mjs";
import { setStage } from "./stage.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["overview", "metrics", "tensor", "findings", "compare", "facts"];

describe("access", () => {
  const stage = setStage();

  for (const theme of ["light", "dark"]) {
    for (const view of VIEWS) {
      it(`finds nothing to complain about in ${view}, ${theme}`, async () => {
        const { page, close } = await openPage(stage.browser, `${stage.serving.address}/#${view}`, { theme });
        await page.locator("main h1").waitFor({ state: "attached" });
        await page.waitForFunction(() => !document.querySelector(".waiting"));
        // The policy of the page forbids scripts from elsewhere; the debugger may still run one.
        const session = await page.context().newCDPSession(page);
        await session.send("Runtime.evaluate", { expression: axe });
        const { result } = await session.send("Runtime.evaluate", {
          expression: `axe.run().then(({ passes, violations }) => JSON.stringify({
            passed: passes.map(({ id }) => id),
            failed: violations.map(({ id, nodes }) => ({ id, nodes: nodes.slice(0, 3).map((node) =>
              node.html.slice(0, 200) + " " + node.failureSummary) })) }))`,
          awaitPromise: true,
          returnByValue: true,
        });
        const { passed, failed } = JSON.parse(result.value);
        assert.deepEqual(failed, []);
        for (const rule of ["color-contrast", "button-name", "landmark-one-main"]) assert.ok(passed.includes(rule), rule);
        await close();
      });
    }
  }
});
