// What the server tells by itself: which runs there are, and that something about them is new.
// Holds the one list of runs of the page.

import { signal } from "@preact/signals";
import { source } from "../api/source";
import type { RunSummary, Server } from "../api/types";

export type Connection = "connecting" | "open" | "lost" | "report";

export const connection = signal<Connection>(source.isReport ? "report" : "connecting");
export const server = signal<Server | null>(null);
// Null until the first answer.
export const runs = signal<RunSummary[] | null>(null);
// Why there are no runs, as a sentence.
export const startProblem = signal<string | null>(null);
// Grow when the rules or a comparison have something new.
export const findingsNews = signal(0);
export const comparisonNews = signal(0);

const RETRY_MILLIS = 2000;

export async function startLive(): Promise<void> {
  await readRuns();
  if (!source.isReport) listen();
}

async function readRuns(): Promise<void> {
  try {
    const [about, list] = await Promise.all([
      source.json<Server>("/api"),
      source.json<{ runs: RunSummary[] }>("/api/runs"),
    ]);
    server.value = about;
    runs.value = list.runs;
    startProblem.value = null;
  } catch (error) {
    startProblem.value = (error as Error).message;
  }
}

function listen(): void {
  const events = new EventSource("/api/events");
  const on = <T>(name: string, act: (data: T) => void) =>
    events.addEventListener(name, (event) => act(JSON.parse((event as MessageEvent<string>).data) as T));

  on<{ runs: Pick<RunSummary, "id" | "revision">[] }>("hello", (news) => {
    const wasLost = connection.value === "lost";
    connection.value = "open";
    const revisions = new Map(runs.value?.map((run) => [run.id, run.revision]));
    // What happened between the list and this connection was told to nobody.
    const isBehind = news.runs.some((run) => revisions.get(run.id) !== run.revision);
    if (wasLost || isBehind || runs.value === null) void readRuns();
    findingsNews.value += 1;
  });
  on("runs", () => void readRuns());
  on<Partial<RunSummary> & { id: string }>("run", (news) => {
    const known = runs.value ?? [];
    if (!known.some((run) => run.id === news.id)) void readRuns();
    else runs.value = known.map((run) => (run.id === news.id ? { ...run, ...news } : run));
  });
  on<{ id: string; findings: RunSummary["findings"] }>("findings", ({ id, findings }) => {
    runs.value = (runs.value ?? []).map((run) => (run.id === id ? { ...run, findings } : run));
    findingsNews.value += 1;
  });
  on("compare", () => {
    comparisonNews.value += 1;
  });

  events.onerror = () => {
    connection.value = "lost";
    // The browser tries again by itself unless the server answered with an error.
    if (events.readyState === EventSource.CLOSED) window.setTimeout(listen, RETRY_MILLIS);
  };
}
