// Asks the server that this page came from.

import { Problem } from "./problem";
import type { Source } from "./source";

export class ServerSource implements Source {
  readonly isReport = false;

  async json<T>(address: string, signal?: AbortSignal): Promise<T> {
    return (await this.ask(address, signal)).json() as Promise<T>;
  }

  async binary(address: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    return (await this.ask(address, signal)).arrayBuffer();
  }

  private async ask(address: string, signal?: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(address, signal ? { signal } : {});
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem("unreachable", "The server does not answer.", 2);
    }
    if (response.ok) return response;
    const body = (await response.json().catch(() => null)) as {
      error?: { code: string; message: string };
    } | null;
    const retry = Number(response.headers.get("Retry-After") ?? Number.NaN);
    throw new Problem(
      body?.error?.code ?? "unreachable",
      body?.error?.message ?? `The server answered with status ${response.status}.`,
      Number.isFinite(retry) ? retry : null,
    );
  }
}
