import { describe, expect, it } from "vitest";
import { fileName } from "./save";

describe("fileName", () => {
  it("keeps letters of every language and nothing that means something to a file system", () => {
    expect(fileName("../größe/<b>.weight")).toBe("größe-b-.weight");
    expect(fileName("重み 1")).toBe("重み-1");
    expect(fileName("///")).toBe("smdebug");
    expect(fileName("x".repeat(500))).toHaveLength(80);
  });
});
