// One question that is asked again whenever its answer may be new, but never twice at a time,
// and never for more than a quarter of the time.

import { Problem } from "../api/problem";

const PAUSE_MILLIS = 400;
const PAUSE_FACTOR = 3;

export class Question<T> {
  private readonly abort = new AbortController();
  private isBusy = false;
  private isWanted = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ask: (signal: AbortSignal) => Promise<T>,
    private readonly tell: (value: T | null, problem: Error | null) => void,
  ) {}

  // Asks now, or as soon as the present answer is there and the pause behind it is over.
  poke(): void {
    if (this.isBusy) this.isWanted = true;
    else void this.run();
  }

  // Nothing is told from now on.
  close(): void {
    this.abort.abort();
    clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    this.isBusy = true;
    this.isWanted = false;
    const begin = performance.now();
    let pause = 0;
    try {
      const value = await this.ask(this.abort.signal);
      if (this.abort.signal.aborted) return;
      this.tell(value, null);
    } catch (error) {
      if (this.abort.signal.aborted) return;
      const retrySecs = error instanceof Problem ? error.retrySecs : null;
      if (retrySecs !== null) {
        pause = retrySecs * 1000;
        this.isWanted = true;
      }
      this.tell(null, error as Error);
    }
    pause = Math.max(pause, PAUSE_MILLIS, (performance.now() - begin) * PAUSE_FACTOR);
    this.timer = setTimeout(() => {
      this.isBusy = false;
      if (this.isWanted) void this.run();
    }, pause);
  }
}
