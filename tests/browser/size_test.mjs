// A model of 12,000 tensors over 1,000 steps: everything works; times are printed, not judged.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { assertNoTroubles, launch, openPage, paintedHeatmap, screenshot } from "./chromium.mjs";
import { record, runFolder } from "./recording.mjs";
import { Serving } from "./serving.mjs";

const FRAMES = 120;

// Runs in the page: how long at least one answer was on its way.
function waitingMillis() {
  let [total, end] = [0, 0];
  const entries = performance.getEntriesByType("resource").filter((entry) => !entry.name.endsWith("/events"));
  for (const { startTime, responseEnd } of entries.sort((a, b) => a.startTime - b.startTime)) {
    total += Math.max(0, responseEnd - Math.max(startTime, end));
    end = Math.max(end, responseEnd);
  }
  return total;
}

describe("size", () => {
  let browser;
  let serving;
  before(async () => {
    const folder = process.env.SMDEBUG_WIDE_RUN ?? runFolder();
    if (!process.env.SMDEBUG_WIDE_RUN) await record("wide", `${folder}/wide`, "--tensors", 12_000, "--steps", 1000);
    serving = await Serving.start([folder]);
    browser = await launch();
    await untilRead();
  });
  after(async () => {
    await browser?.close();
    await serving?.stop();
  });

  async function untilRead() {
    for (;;) {
      const { runs } = await serving.json("/api/runs");
      if (runs[0]?.steps >= 1000) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  it("has the overview on the screen", async (test) => {
    for (const round of ["first", "second"]) {
      const { page, troubles, close } = await openPage(browser, serving.address);
      await paintedHeatmap(page);
      // Since the address was opened.
      const took = Math.round(await page.evaluate(() => performance.now()));
      const waited = Math.round(await page.evaluate(waitingMillis));
      test.diagnostic(`overview of 12,000 × 1,000, ${round} time: ${took} ms, of which ${waited} ms waiting for answers`);
      await screenshot(page, "wide");
      assertNoTroubles(troubles);
      await close();
    }
  });

  it("pans and zooms", async (test) => {
    const { page, troubles } = await openPage(browser, `${serving.address}/#overview?from=200&to=600&first=3000&count=2000`);
    const box = await (await paintedHeatmap(page)).boundingBox();
    await page.waitForTimeout(1000);
    await page.evaluate(() => {
      window.frameTimes = [];
      let last = performance.now();
      const tick = (now) => {
        window.frameTimes.push(now - last);
        last = now;
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.keyboard.down("Shift");
    await page.mouse.move(x, y);
    await page.mouse.down();
    for (let i = 0; i < FRAMES; i++) {
      await page.mouse.move(x + 200 * Math.sin(i / 9), y + 150 * Math.sin(i / 7));
    }
    const times = (await page.evaluate(() => window.frameTimes)).sort((a, b) => a - b);
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const share = (part) => times[Math.floor(part * (times.length - 1))].toFixed(1);
    test.diagnostic(`frames while panning: median ${share(0.5)} ms, 95 % ${share(0.95)} ms, worst ${share(1)} ms`);
    await page.waitForURL(/first=\d+/);
    await page.getByRole("button", { name: "Collapse modules" }).click();
    await page.waitForURL(/collapsed=/);
    await paintedHeatmap(page);
    await screenshot(page, "wide-collapsed");
    assert.ok(times.length > 10);
    assertNoTroubles(troubles);
  });
});
