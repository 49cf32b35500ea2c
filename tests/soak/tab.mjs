// The page in Chromium for a soak: stays open, and shows by a heartbeat that it is alive.
//
//   tab.mjs ADDRESS HEARTBEAT FAILURES
//
// Each beat means that the page has answered and shows something; it tells the number of the process,
// that of the beat, and what the scripts of the page keep, in MiB. Errors of its scripts go to the
// file of failures; requests that fail do not, since runs come and go. SIGTERM ends it.

import { appendFileSync, writeFileSync } from "node:fs";
import { launch, openPage } from "../browser/chromium.mjs";

const PAUSE_MILLIS = 1000;
const [address, heartbeat, failures] = process.argv.slice(2);

const browser = await launch();
let isOver = false;
process.on("SIGTERM", () => {
  isOver = true;
});

const { page, troubles } = await openPage(browser, address);
let told = 0;
const inside = await page.context().newCDPSession(page);

// What is left after the garbage is gone.
async function heapMib() {
  await inside.send("HeapProfiler.collectGarbage");
  return (await inside.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
}

async function look(beat) {
  await page.waitForTimeout(PAUSE_MILLIS);
  const text = await page.locator("body").innerText();
  const heap = (await heapMib()).toFixed(2);
  if (text.length > 0) writeFileSync(heartbeat, `${process.pid} ${beat} ${heap}\n`);
  for (const what of troubles.slice(told)) {
    if (/Failed to load resource/.test(what)) continue;
    appendFileSync(failures, `${JSON.stringify({ at: Date.now() / 1000, what })}\n`);
  }
  told = troubles.length;
}

for (let beat = 1; !isOver; beat += 1) {
  try {
    await look(beat);
  } catch (error) {
    // The browser hears the signal, too.
    if (!isOver) throw error;
  }
}
await browser.close();
