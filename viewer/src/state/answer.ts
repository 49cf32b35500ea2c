// Answers as state of a component. An answer stays on the screen while a newer one is on its way.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type HeatmapBlock, parseHeatmapBlock } from "../api/heatmap_block";
import { source } from "../api/source";
import { withoutEmptyColumns } from "../model/heatmap_columns";
import { connection, server } from "./live";
import { Question } from "./question";

export interface Answer<T> {
  value: T | null;
  problem: Error | null;
  isPending: boolean;
}

// How many answers are kept so that a view that was open before has its values at once.
const REMEMBERED = 64;
const remembered = new Map<string, unknown>();

export function useJson<T>(address: string | null, revision: unknown = 0): Answer<T> {
  return useAnswer<T>(address, revision, (at, signal) => source.json<T>(at, signal));
}

export function useHeatmap(address: string | null, revision: unknown = 0): Answer<HeatmapBlock> {
  return useAnswer(address, revision, async (at, signal) =>
    withoutEmptyColumns(parseHeatmapBlock(await source.binary(at, signal))),
  );
}

// Asks when the address changes, and again when `revision` does, the server is another one, or the connection
// is back. With address null it asks nothing.
function useAnswer<T>(
  address: string | null,
  revision: unknown,
  ask: (address: string, signal: AbortSignal) => Promise<T>,
): Answer<T> {
  const instance = server.value?.instance ?? "";
  const isConnected = connection.value !== "lost";
  const key = address === null ? null : `${instance} ${address}`;
  const [held, setHeld] = useState<{ key: string | null; answer: Answer<T> }>({
    key: null,
    answer: start(key),
  });
  const question = useRef<Question<T> | null>(null);

  // Before the screen is painted, so that the answer is on its way meanwhile.
  useLayoutEffect(() => {
    if (address === null || key === null) return;
    const asked = new Question<T>(
      (signal) => ask(address, signal),
      (value, problem) => {
        if (value !== null) remember(key, value);
        setHeld((old) => {
          const last = value ?? (old.key === key ? old.answer.value : null);
          return { key, answer: { value: last, problem, isPending: false } };
        });
      },
    );
    question.current = asked;
    return () => asked.close();
  }, [key]);
  useLayoutEffect(() => {
    if (key !== null) question.current?.poke();
  }, [key, revision, isConnected]);

  return held.key === key ? held.answer : start(key);
}

function start<T>(key: string | null): Answer<T> {
  const value = key === null ? null : ((remembered.get(key) as T | undefined) ?? null);
  return { value, problem: null, isPending: key !== null };
}

function remember(key: string, value: unknown): void {
  remembered.delete(key);
  remembered.set(key, value);
  const oldest = remembered.keys().next().value;
  if (remembered.size > REMEMBERED && oldest !== undefined) remembered.delete(oldest);
}

// The last answer that had a value, for views that would flicker without.
export function useLast<T>(value: T | null, owner: unknown): T | null {
  const last = useRef<{ value: T | null; owner: unknown }>({ value: null, owner });
  if (value !== null || last.current.owner !== owner) last.current = { value, owner };
  return last.current.value;
}
