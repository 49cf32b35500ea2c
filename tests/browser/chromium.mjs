// Debian's Chromium with pages that tell when anything went wrong on them.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const OUTPUT = join(import.meta.dirname, "output");
const PROGRAM = "/usr/bin/chromium";
// A page that stands in for the one inside of the program, to try changes without building it.
const PAGE = process.env.SMDEBUG_PAGE;
const WIDE = { width: 1400, height: 900 };
// Tests wait for what must come; only a page that hangs reaches this.
const PATIENCE_MILLIS = 60_000;

export async function launch() {
  return chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox", "--disable-gpu"] });
}

// A page of its own. `troubles` collects errors, and requests that leave the server.
export async function openPage(browser, address, options = {}) {
  const context = await browser.newContext({
    viewport: options.viewport ?? WIDE,
    colorScheme: options.theme ?? "light",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MILLIS);
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()}`);
  });
  const origin = new URL(address).origin;
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(data|blob):/.test(url) && !url.startsWith(origin) && !url.startsWith("file:")) {
      troubles.push(`request: ${url}`);
    }
  });
  if (PAGE) {
    const body = readFileSync(PAGE);
    await page.route(`${origin}/`, (route) => route.fulfill({ body, contentType: "text/html" }));
  }
  await page.goto(address);
  return { page, troubles, close: () => context.close() };
}

export function assertNoTroubles(troubles) {
  assert.deepEqual(troubles, []);
}

export async function screenshot(page, name, fullPage = false) {
  mkdirSync(OUTPUT, { recursive: true });
  await page.screenshot({ path: join(OUTPUT, `${name}.png`), fullPage });
}

// The heat map that is painted: resolves when its cells have colours.
export async function paintedHeatmap(page, index = 0) {
  await page.locator(".heatmap-foot").nth(index).waitFor();
  await page.waitForFunction((at) => {
    const canvas = document.querySelectorAll(".heatmap-stage canvas")[at];
    if (!canvas?.width) return false;
    const { data } = canvas.getContext("2d").getImageData(0, 0, 32, canvas.height);
    return data.some((byte) => byte !== 0);
  }, index);
  return page.locator(".heatmap-stage").nth(index);
}

// The text of a file that the page hands out.
export async function downloaded(page, act) {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  return { name: download.suggestedFilename(), bytes: Buffer.concat(chunks) };
}
