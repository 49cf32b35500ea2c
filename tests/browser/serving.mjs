// The real server, on a port of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "./recording.mjs";

export const PROGRAM = process.env.SMDEBUG_PROGRAM ?? join(ROOT, "build", "dev", "smdebug");

export class Serving {
  #child;

  // Serves these locations until `stop`. A port that was used before can be named again.
  static async start(locations, port = 0) {
    const serving = new Serving();
    serving.locations = locations;
    await serving.#run(port);
    return serving;
  }

  async #run(port) {
    this.#child = spawn(PROGRAM, ["serve", ...this.locations, "--port", String(port)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    const ended = once(this.#child, "close").then(() => {
      throw new Error(`smdebug serve ended: ${text}`);
    });
    ended.catch(() => {});
    const told = new Promise((resolve) => {
      const listen = (data) => {
        text += data;
        const found = /http:\/\/[^\s]+/.exec(text);
        if (found) resolve(found[0].replace(/\/+$/, ""));
      };
      this.#child.stdout.on("data", listen);
      this.#child.stderr.on("data", listen);
    });
    this.address = await Promise.race([told, ended]);
    this.port = Number(new URL(this.address).port);
  }

  async stop() {
    this.#child.kill("SIGINT");
    if (this.#child.exitCode === null) await once(this.#child, "close");
  }

  async restart() {
    await this.#run(this.port);
  }

  async json(path) {
    return (await fetch(this.address + path)).json();
  }
}
