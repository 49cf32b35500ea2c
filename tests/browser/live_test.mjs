// Runs that change while somebody looks: new steps, ends, restarts, removals.

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { launch, openPage, paintedHeatmap, screenshot } from "./chromium.mjs";
import { record, runFolder, startRecording } from "./recording.mjs";
import { Serving } from "./serving.mjs";

const shownStep = (page) =>
  page.evaluate(() => Number(/step ([\d,]+)/.exec(document.querySelector(".run-progress").textContent)?.[1] ?? -1));

async function reaches(page, step) {
  await page.waitForFunction(
    (want) =>
      Number(/step ([\d,]+)/.exec(document.querySelector(".run-progress")?.textContent ?? "")?.[1] ?? -1) >= want,
    step,
  );
}

describe("live", () => {
  let browser;
  before(async () => {
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
  });

  it("shows steps of a running training as they come, in two tabs, and says when it ended", async () => {
    const folder = runFolder();
    const serving = await Serving.start([folder]);
    const first = await openPage(browser, serving.address);
    await first.page.getByText("There is no run here yet.").waitFor();
    const end = join(folder, "end");
    const training = startRecording(["train", join(folder, "run"), "--steps", 10_000, "--pause", 0.2, "--until", end]);
    try {
      await paintedHeatmap(first.page);
      const second = await openPage(browser, serving.address);
      await paintedHeatmap(second.page);
      const begin = await shownStep(first.page);
      await reaches(first.page, begin + 5);
      await reaches(second.page, begin + 5);
      await first.page.locator(".run-state-running").waitFor();
      await screenshot(first.page, "live");
      writeFileSync(end, "");
      await training.finished;
      for (const { page, troubles } of [first, second]) {
        await page.getByText("finished").waitFor();
        assert.deepEqual(troubles, []);
      }
    } finally {
      training.stop();
      await serving.stop();
    }
  });

  it("says that the server is away, and goes on when it is back", async () => {
    const folder = runFolder();
    await record("train", join(folder, "run"), "--steps", 12);
    const serving = await Serving.start([folder]);
    const { page } = await openPage(browser, serving.address);
    await paintedHeatmap(page);
    await serving.stop();
    await page.getByText("The server does not answer.").waitFor();
    await serving.restart();
    await page.getByText("The server does not answer.").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Run", exact: true }).click();
    await page.getByText("All files are well.").waitFor();
    await serving.stop();
  });

  it("keeps what was read when the run is removed, and says so", async () => {
    const folder = runFolder();
    const out = join(folder, "run");
    await record("train", out, "--steps", 12);
    await record("train", join(folder, "other"), "--steps", 5);
    const serving = await Serving.start([out, join(folder, "other")]);
    const { runs } = await serving.json("/api/runs");
    const { page } = await openPage(browser, `${serving.address}/#overview?run=${runs.find((run) => run.path.endsWith("run")).id}`);
    await paintedHeatmap(page);
    rmSync(out, { recursive: true });
    await page.getByText(/files of this run were removed|This run is not here/).first().waitFor();
    await page.getByRole("link", { name: "Findings" }).click();
    await page.locator("main").waitFor();
    await serving.stop();
  });
});
