// Writes the pictures of the documentation anew: docs/images/page_*.png.

import { join } from "node:path";
import { launch, openPage, paintedHeatmap } from "./chromium.mjs";
import { ROOT, recordPair, runFolder } from "./recording.mjs";
import { Serving } from "./serving.mjs";

const folder = runFolder();
await recordPair(folder, "--plain", "--pause", 0.05);
const serving = await Serving.start([folder]);
const browser = await launch();
const sick = "gradient/block2.mlp.up.weight";

async function picture(name, hash, height, act) {
  const { page, close } = await openPage(browser, `${serving.address}/${hash}`, {
    viewport: { width: 1200, height },
  });
  await act(page);
  await page.screenshot({ path: join(ROOT, "docs", "images", `page_${name}.png`) });
  await close();
}

await picture("overview", "#overview?run=baseline&role=gradient&statistic=l2", 520, async (page) => {
  const map = await (await paintedHeatmap(page)).boundingBox();
  await page.locator(".probable-cause").waitFor();
  const row = await page.getByRole("button", { name: sick }).boundingBox();
  await page.mouse.move(map.x + map.width * 0.93, row.y + row.height / 2);
  await page.locator(".readout").waitFor();
});
await picture("tensor", `#tensor?run=baseline&tensor=${encodeURIComponent(sick)}&step=50`, 1180, async (page) => {
  await page.locator(".ridgeline canvas").waitFor();
  await page.locator(".value-image canvas").waitFor();
  await page.locator(".value-table td bdi").first().waitFor();
});
await picture("findings", "#findings?run=baseline", 620, async (page) => {
  await page.locator(".finding table tbody tr").first().waitFor();
});
await picture("compare", "#compare?run=baseline&other=drifted", 900, async (page) => {
  await page.getByText(/They part at step/).waitFor();
  for (const index of [0, 1, 2]) await paintedHeatmap(page, index);
});
await browser.close();
await serving.stop();
