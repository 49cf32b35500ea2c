import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "../api/problem";
import { Question } from "./question";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("Question", () => {
  it("asks once more for any number of pokes while it is busy", async () => {
    const ask = vi.fn(async () => 1);
    const told: unknown[] = [];
    const question = new Question(ask, (value) => told.push(value));
    for (let i = 0; i < 5; i++) question.poke();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ask).toHaveBeenCalledTimes(2);
    expect(told).toEqual([1, 1]);
  });

  it("tries again when the problem says that this may help", async () => {
    const ask = vi
      .fn<() => Promise<number>>()
      .mockRejectedValueOnce(new Problem("unreachable", "No.", 2))
      .mockResolvedValue(3);
    const told: unknown[] = [];
    new Question(ask, (value, problem) => told.push(problem?.message ?? value)).poke();
    await vi.advanceTimersByTimeAsync(1000);
    expect(told).toEqual(["No."]);
    await vi.advanceTimersByTimeAsync(1500);
    expect(told).toEqual(["No.", 3]);
  });

  it("does not repeat a question that has a wrong parameter", async () => {
    const ask = vi.fn(async () => Promise.reject(new Problem("invalid_argument", "No.")));
    new Question(ask, () => {}).poke();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ask).toHaveBeenCalledTimes(1);
  });

  it("tells nothing after it was closed", async () => {
    const told: unknown[] = [];
    const question = new Question(
      async () => 1,
      (value) => told.push(value),
    );
    question.poke();
    question.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(told).toEqual([]);
  });
});
