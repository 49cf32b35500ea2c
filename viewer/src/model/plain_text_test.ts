import { describe, expect, it } from "vitest";
import { plainText } from "./plain_text";

describe("plainText", () => {
  it("shows signs that would turn the text around", () => {
    expect(plainText("'a\u202eb' has\nNaN\u0007")).toBe("'a\ufffdb' has\nNaN\ufffd");
  });

  it("leaves every language as it is", () => {
    expect(plainText("größe 重み עברית 👍🏽")).toBe("größe 重み עברית 👍🏽");
  });
});
