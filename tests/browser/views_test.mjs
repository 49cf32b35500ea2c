// Every view on a recorded run.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertNoTroubles, downloaded, openPage, paintedHeatmap, screenshot } from "./chromium.mjs";
import { setStage } from "./stage.mjs";

describe("views", () => {
  const stage = setStage();
  let opened;

  async function at(hash, options) {
    opened = await openPage(stage.browser, `${stage.serving.address}/${hash}`, options);
    return opened.page;
  }
  async function done() {
    assertNoTroubles(opened.troubles);
    await opened.close();
  }

  const runId = async (name) => (await stage.serving.json("/api/runs")).runs.find((run) => run.name.endsWith(name)).id;
  const sick = "gradient/block2.mlp.up.weight";

  it("shows the whole model, and what was found, on the overview", async () => {
    const page = await at(`#overview?run=${await runId("baseline")}&role=gradient&statistic=l2`);
    const map = await paintedHeatmap(page);
    await page.locator(".probable-cause").waitFor();
    await page.getByRole("button", { name: sick }).hover();
    const box = await map.boundingBox();
    const row = await page.getByRole("button", { name: sick }).boundingBox();
    await page.mouse.move(box.x + box.width * 0.97, row.y + row.height / 2);
    const readout = page.locator(".readout");
    await readout.waitFor();
    assert.match(await readout.innerText(), /block2\.mlp\.up\.weight[\s\S]*not finite/);
    await screenshot(page, "overview-light");
    await done();
  });

  it("zooms by brush, keeps the part in the address, and shows all again", async () => {
    const page = await at(`#overview?run=${await runId("baseline")}`);
    const map = await paintedHeatmap(page);
    const box = await map.boundingBox();
    await page.mouse.move(box.x + box.width * 0.25, box.y + box.height * 0.25);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + box.height * 0.75, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/from=\d+/);
    const zoomed = page.url();
    assert.match(zoomed, /first=\d+/);
    await page.reload();
    await paintedHeatmap(page);
    assert.equal(page.url(), zoomed);
    await page.getByRole("button", { name: "Show all" }).click();
    await page.waitForURL((url) => !url.hash.includes("from="));
    await done();
  });

  it("collapses and opens modules", async () => {
    const page = await at(`#overview?run=${await runId("baseline")}&role=gradient`);
    await paintedHeatmap(page);
    await page.getByRole("button", { name: sick }).waitFor();
    await page.getByRole("button", { name: "Collapse module block2", exact: false }).first().click();
    await page.waitForURL(/collapsed=/);
    await page.getByRole("button", { name: /^Open module .*block2/ }).waitFor();
    assert.equal(await page.getByRole("button", { name: sick }).count(), 0);
    await page.getByRole("button", { name: "Open all modules" }).click();
    await page.getByRole("button", { name: sick }).waitFor();
    await done();
  });

  it("goes from cell to cell by keyboard and opens a tensor", async () => {
    const page = await at(`#overview?run=${await runId("baseline")}&role=gradient`);
    const map = await paintedHeatmap(page);
    await map.focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    const spoken = page.locator('[aria-live="polite"]').first();
    await page.waitForFunction(() => /step/.test(document.querySelector('.heatmap [aria-live="polite"]').textContent));
    assert.match(await spoken.textContent(), /, step \d+: [\d.]+/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#tensor\?/);
    await done();
  });

  it("writes the overview as picture and as table", async () => {
    const page = await at(`#overview?run=${await runId("baseline")}&role=gradient&statistic=l2`);
    await paintedHeatmap(page);
    const table = await downloaded(page, () => page.getByRole("button", { name: "CSV", exact: true }).click());
    const lines = table.bytes.toString().trim().split("\r\n");
    assert.equal(lines[0].split(",")[0], "tensor");
    assert.ok(lines.some((line) => line.startsWith(`${sick},`) && line.includes("not finite")));
    const picture = await downloaded(page, () => page.getByRole("button", { name: "PNG", exact: true }).click());
    assert.deepEqual([...picture.bytes.subarray(1, 4)], [..."PNG"].map((c) => c.charCodeAt(0)));
    await done();
  });

  it("shows train and eval, several runs, smoothed, along time", async () => {
    const page = await at(`#metrics?run=${await runId("baseline")}`);
    const loss = page.locator(".chart", { hasText: "CrossEntropyLoss_output_0" });
    await loss.getByText("train").waitFor();
    await loss.getByText("eval").waitFor();
    // Evaluation 5 came after 51 steps of training and 5 of evaluation.
    const alone = await downloaded(page, () => loss.getByRole("button", { name: /as CSV/ }).click());
    assert.match(alone.bytes.toString(), /\r\n56,,[\d.]+\r\n/);
    await page.getByRole("checkbox", { name: "drifted" }).check();
    await loss.getByText(/drifted, train/).waitFor();
    await page.getByRole("slider").fill("0.8");
    await page.getByRole("button", { name: "wall time" }).click();
    await page.getByRole("button", { name: "log", exact: true }).click();
    await page.waitForURL(/smooth=0.8.*x=time.*log=1/);
    await screenshot(page, "metrics-light");
    const table = await downloaded(page, () => loss.getByRole("button", { name: /as CSV/ }).click());
    assert.match(table.bytes.toString().split("\r\n")[0], /^after,.*train.*eval/);
    await done();
  });

  it("shows a tensor: statistics by worker, distribution, elements", async () => {
    const page = await at(`#tensor?run=${await runId("baseline")}&tensor=block1.mlp.up.weight`);
    await page.getByRole("heading", { name: "block1.mlp.up.weight" }).waitFor();
    await page.getByRole("button", { name: "each" }).click();
    await page.locator(".chart", { hasText: "worker_1" }).first().waitFor();
    await page.locator(".ridgeline canvas").waitFor();
    await page.getByRole("button", { name: "map" }).click();
    await page.locator(".value-table td bdi").first().waitFor();
    await page.locator(".value-image canvas").waitFor();
    await screenshot(page, "tensor-light", true);
    await done();
  });

  it("takes any slice of a tensor and gives it as .npy", async () => {
    const run = await runId("baseline");
    const name = "embedding.kernel.weight";
    const page = await at(`#tensor?run=${run}&tensor=${name}&step=20`);
    await page.getByLabel("Index in dimension 0 of size 3").fill("2");
    await page.getByRole("button", { name: "Show dimension 1 of size 8" }).waitFor();
    await page.waitForURL(/slice=2/);
    const asked = await stage.serving.json(`/api/runs/${run}/values?tensor=${name}&step=20&slice=2,:,:`);
    const first = page.locator(".value-table tbody td").first();
    const expected = Number(asked.values[0].toPrecision(3));
    await page.waitForFunction(
      (want) => Math.abs(Number(document.querySelector(".value-table tbody td")?.textContent.replace("\u2212", "-")) - want) < Math.abs(want) * 0.01,
      expected,
    );
    assert.ok(await first.isVisible());
    const file = await downloaded(page, () => page.getByRole("link", { name: ".npy" }).click());
    assert.equal(file.bytes.subarray(1, 6).toString(), "NUMPY");
    assert.match(file.bytes.subarray(0, 128).toString("latin1"), /'shape': \(3, 8, 8\)/);
    await done();
  });

  it("ranks findings, shows their evidence, and leads to the place", async () => {
    const page = await at(`#findings?run=${await runId("baseline")}`);
    await page.locator(".finding-list li").first().waitFor();
    assert.ok((await page.locator(".finding table tbody tr").count()) > 0);
    await page.locator(".finding details summary").click();
    await screenshot(page, "findings-light");
    await page.getByRole("link", { name: "Show in the overview" }).click();
    await page.waitForURL(/#overview\?.*from=/);
    await paintedHeatmap(page);
    await done();
  });

  it("compares two runs and marks where they part", async () => {
    const [a, b] = [await runId("baseline"), await runId("drifted")];
    const page = await at(`#compare?run=${a}&other=${b}`);
    await page.getByText(/They part at step/).waitFor();
    for (const index of [0, 1, 2]) await paintedHeatmap(page, index);
    assert.match(await page.locator(".verdict").innerText(), /They part at step 33 in .*: baseline has [\d.]+, drifted has [\d.]+/);
    assert.ok((await page.locator("table tbody tr").count()) > 0);
    await screenshot(page, "compare-light", true);
    await done();
  });

  it("tells the facts of a run", async () => {
    const page = await at(`#facts?run=${await runId("baseline")}`);
    await page.getByRole("heading", { name: "Collections" }).waitFor();
    await page.getByText("All files are well.").waitFor();
    assert.ok(await page.locator("main").getByText("worker_1").first().isVisible());
    await screenshot(page, "facts-light", true);
    await done();
  });

  it("shows every view dark, and on a narrow screen without scrolling sideways", async () => {
    const run = await runId("baseline");
    for (const view of ["overview", "metrics", "tensor", "findings", "compare", "facts"]) {
      let page = await at(`#${view}?run=${run}`, { theme: "dark" });
      await settled(page);
      await screenshot(page, `${view}-dark`);
      await done();
      page = await at(`#${view}?run=${run}`, { viewport: { width: 400, height: 800 } });
      await settled(page);
      await screenshot(page, `${view}-narrow`, true);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0, `${view} is ${overflow} pixels too wide`);
      await done();
    }
  });

  async function settled(page) {
    await page.locator("main h1").waitFor({ state: "attached" });
    await page.waitForLoadState("networkidle").catch(() => {});
    await page.waitForFunction(() => !document.querySelector(".waiting"));
  }
});
