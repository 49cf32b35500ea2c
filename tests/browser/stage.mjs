// A server of two runs and a browser, for all tests of a suite.

import { after, before } from "node:test";
import { launch } from "./chromium.mjs";
import { recordPair, runFolder } from "./recording.mjs";
import { Serving } from "./serving.mjs";

// To be called while a suite is described; `serving` and `browser` are there when its tests run.
export function setStage() {
  const stage = {};
  before(async () => {
    const folder = runFolder();
    await recordPair(folder);
    stage.serving = await Serving.start([folder]);
    stage.browser = await launch();
  });
  after(async () => {
    await stage.browser?.close();
    await stage.serving?.stop();
  });
  return stage;
}
