// Names that come from strangers are text and nothing else.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { assertNoTroubles, launch, openPage, paintedHeatmap, screenshot } from "./chromium.mjs";
import { record, runFolder } from "./recording.mjs";
import { Serving } from "./serving.mjs";

describe("hostile names", () => {
  let browser;
  let serving;
  let names;
  let runPath;

  before(async () => {
    const folder = runFolder();
    await record("train", `${folder}/run`, "--steps", 12);
    serving = await Serving.start([folder]);
    browser = await launch();
    const { runs } = await serving.json("/api/runs");
    runPath = `/api/runs/${runs[0].id}`;
    const { tensors } = await serving.json(`${runPath}/tensors`);
    names = tensors.map((tensor) => tensor.name).filter((name) => /<img|größe|^long/.test(name));
  });
  after(async () => {
    await browser?.close();
    await serving?.stop();
  });

  it("shows each of them as it is, in every view", async () => {
    assert.equal(names.length, 3);
    for (const name of names) {
      const hash = `#tensor?tensor=${encodeURIComponent(name)}`;
      const { page, troubles, close } = await openPage(browser, `${serving.address}/${hash}`);
      const title = page.locator("h1");
      await title.waitFor();
      assert.equal(await title.textContent(), name);
      await page.locator(".value-table td bdi").first().waitFor();
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByLabel("Tensors", { exact: true }).selectOption("weight");
      await paintedHeatmap(page);
      await page.getByRole("combobox", { name: "Find a tensor" }).fill(name.slice(0, 30));
      await page.locator(".search-list [role=option]").first().waitFor();
      assert.equal(await page.locator("img").count(), 0);
      assert.equal(await page.title(), "smdebug");
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0);
      await screenshot(page, `hostile-${names.indexOf(name)}`);
      assertNoTroubles(troubles);
      await close();
    }
  });

  it("says what to do about addresses of things that are not there", async () => {
    const cases = [
      ["#overview?run=nobody", "This run is not here."],
      ["#tensor?tensor=%3Cscript%3E", "This run has no tensor of this name."],
      ["#compare", "There is only one run."],
    ];
    for (const [hash, text] of cases) {
      const { page, close } = await openPage(browser, `${serving.address}/${hash}`);
      await page.getByText(text).waitFor();
      await close();
    }
  });
});
