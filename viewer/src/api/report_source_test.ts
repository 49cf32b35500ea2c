import { describe, expect, it } from "vitest";
import { ReportSource } from "./report_source";

const report = ReportSource.parse(
  '{"report": 1, "answers": {"/api": {"json": {"is_report": true}}, "/b?x=1": {"base64": "AAH/"}}}',
);

describe("ReportSource", () => {
  it("gives the answers inside", async () => {
    expect(await report.json("/api")).toEqual({ is_report: true });
    expect([...new Uint8Array(await report.binary("/b?x=1"))]).toEqual([0, 1, 255]);
  });

  it("says how to see what is not inside", async () => {
    await expect(report.json("/api/runs")).rejects.toThrow("smdebug serve");
    await expect(report.json("constructor")).rejects.toThrow("not part of the saved report");
  });

  it("refuses a report of another version", () => {
    expect(() => ReportSource.parse('{"report": 2}')).toThrow("version 2");
  });
});
