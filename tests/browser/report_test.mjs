// A report opens from disk and shows the same, without a server.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { assertNoTroubles, downloaded, launch, openPage, paintedHeatmap, screenshot } from "./chromium.mjs";
import { recordPair, runFolder } from "./recording.mjs";
import { PROGRAM } from "./serving.mjs";

describe("report", () => {
  let browser;
  let file;
  before(async () => {
    const folder = runFolder();
    const runs = await recordPair(folder);
    file = join(folder, "report.html");
    execFileSync(PROGRAM, ["report", ...runs, "--html", file]);
    if (process.env.SMDEBUG_PAGE) moveData(file, process.env.SMDEBUG_PAGE);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
  });

  // The data of a report in a page that stands in for the one inside of the program.
  function moveData(report, page) {
    const [data] = /<script type="application\/json" id="smdebug-report"[\s\S]*?<\/script>/.exec(readFileSync(report, "utf8"));
    writeFileSync(report, readFileSync(page, "utf8").replace("<head>", () => `<head>${data}`));
  }

  it("shows every view from one file", async () => {
    const { page, troubles, close } = await openPage(browser, `file://${file}#overview?run=baseline`);
    await paintedHeatmap(page);
    await page.getByText("A saved report").waitFor();
    await screenshot(page, "report");
    await page.getByRole("link", { name: "Metrics" }).click();
    const loss = page.locator(".chart", { hasText: "CrossEntropyLoss_output_0" });
    await loss.waitFor();
    // Evaluation 5 came after 51 steps of training and 5 of evaluation.
    const table = await downloaded(page, () => loss.getByRole("button", { name: /as CSV/ }).click());
    assert.match(table.bytes.toString(), /\r\n56,,[\d.]+\r\n/);
    await page.getByRole("link", { name: "Findings" }).click();
    await page.locator(".finding table tbody tr").first().waitFor();
    await page.getByRole("link", { name: "Open the tensor" }).click();
    await page.locator(".chart").first().waitFor();
    await page.locator(".value-table td bdi").first().waitFor();
    await page.getByRole("link", { name: "Run", exact: true }).click();
    await page.getByText("All files are well.").waitFor();
    assertNoTroubles(troubles);
    await close();
  });

  it("compares its two runs", async () => {
    const { page, troubles, close } = await openPage(browser, `file://${file}#compare?run=baseline`);
    await page.getByText(/They part at step/).waitFor();
    for (const index of [0, 1, 2]) await paintedHeatmap(page, index);
    assertNoTroubles(troubles);
    await close();
  });

  it("takes slices and writes tables by itself", async () => {
    const { page, troubles, close } = await openPage(
      browser,
      `file://${file}#tensor?run=baseline&tensor=embedding.kernel.weight&slice=1,:,:`,
    );
    await page.locator(".value-table td bdi").first().waitFor();
    const first = await downloaded(page, () => page.locator(".panel-head").getByRole("button", { name: "CSV" }).click());
    await page.getByLabel("Index in dimension 0 of size 3").fill("2");
    await page.waitForURL(/slice=2/);
    const second = await downloaded(page, () => page.locator(".panel-head").getByRole("button", { name: "CSV" }).click());
    assert.equal(first.bytes.toString().trim().split("\r\n").length, 8);
    assert.notEqual(first.bytes.toString(), second.bytes.toString());
    assertNoTroubles(troubles);
    await close();
  });
});
