// Answers from the element that `smdebug report` puts into the page.

import { Problem } from "./problem";
import type { Source } from "./source";

interface Report {
  report: number;
  answers: Record<string, { json: unknown } | { base64: string }>;
}

export class ReportSource implements Source {
  readonly isReport = true;

  private constructor(private readonly answers: Report["answers"]) {}

  static parse(text: string): ReportSource {
    const report = JSON.parse(text) as Report;
    if (report.report !== 1) {
      throw new Error(`This report has version ${report.report}; this page reads version 1.`);
    }
    return new ReportSource(report.answers);
  }

  async json<T>(address: string): Promise<T> {
    const answer = this.answer(address);
    if (!("json" in answer)) throw new Error(`The report has bytes instead of JSON at ${address}.`);
    return answer.json as T;
  }

  async binary(address: string): Promise<ArrayBuffer> {
    const answer = this.answer(address);
    if (!("base64" in answer)) throw new Error(`The report has JSON instead of bytes at ${address}.`);
    const text = atob(answer.base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes.buffer;
  }

  private answer(address: string) {
    const answer = Object.hasOwn(this.answers, address) ? this.answers[address] : undefined;
    if (answer === undefined) {
      throw new Problem(
        "not_in_report",
        "This is not part of the saved report. Open the run itself with: smdebug serve RUN",
      );
    }
    return answer;
  }
}
