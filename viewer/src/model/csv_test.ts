import { describe, expect, it } from "vitest";
import { csv } from "./csv";

describe("csv", () => {
  it("quotes what would break a row", () => {
    expect(csv([["a,b", 'say "x"', "two\nlines", "plain"]])).toBe('"a,b","say ""x""","two\nlines",plain\r\n');
  });

  it("writes numbers in full and leaves gaps empty", () => {
    expect(csv([[0.1 + 0.2, null, -5, Number.NaN]])).toBe("0.30000000000000004,,-5,NaN\r\n");
  });

  it("does not let a name become a formula", () => {
    expect(csv([["=HYPERLINK(1)", "@x"]])).toBe("'=HYPERLINK(1),'@x\r\n");
  });
});
