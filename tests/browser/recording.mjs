// Runs that record.py writes with the Python package.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..", "..");
const PYTHON = join(ROOT, ".venvs", "dev", "bin", "python");

// A folder for runs that is removed when the process ends.
export function runFolder() {
  const folder = mkdtempSync(join(tmpdir(), "smdebug-browser-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// Starts to record; the answer resolves when the run is finished.
export function startRecording(words, environment = {}) {
  const child = spawn(PYTHON, [join(import.meta.dirname, "record.py"), ...words.map(String)], {
    env: { ...process.env, PYTHONPATH: join(ROOT, "python"), ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (data) => {
    log += data;
  });
  const finished = once(child, "close").then(([code]) => {
    if (code !== 0) throw new Error(`record.py ended with ${code}: ${log}`);
  });
  return { finished, stop: () => child.kill() };
}

export async function record(...words) {
  await startRecording(words).finished;
}

// The run that most tests look at: two workers, block 2 explodes.
export async function recordBaseline(folder, ...words) {
  const out = join(folder, "baseline");
  for (const rank of ["0", "1"]) {
    await startRecording(["train", out, ...words], { RANK: rank, WORLD_SIZE: "2" }).finished;
  }
  return out;
}

// The baseline, and a run that drifts away from it.
export async function recordPair(folder, ...words) {
  const baseline = await recordBaseline(folder, ...words);
  const drifted = join(folder, "drifted");
  await record("train", drifted, "--drift", 30, ...words);
  return [baseline, drifted];
}
