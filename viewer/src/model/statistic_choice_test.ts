import { describe, expect, it } from "vitest";
import type { Catalogue, Role, Tensor } from "../api/types";
import { chooseStatistic } from "./statistic_choice";

const tensor = (role: Role, statistics: string[], has_value = false): Tensor => ({
  id: 0,
  name: role,
  module: 0,
  role,
  collections: [],
  dtype: null,
  shape: null,
  statistics,
  has_value,
  modes: [],
});
const catalogue = (...tensors: Tensor[]): Catalogue => ({
  catalogue: 1,
  collections: [],
  roles: [],
  tensors,
  modules: [],
});
const info = (name: string, is_stored: boolean) => ({ name, label: name, is_stored, suits_log: true });
const FACTS = {
  statistics: [
    info("l2", true),
    info("update_ratio", false),
    info("zero_percent", false),
    info("nonfinite", false),
  ],
};
const NOTHING = { role: null, statistic: null };

describe("chooseStatistic", () => {
  it("begins with gradients, and with what says most", () => {
    const all = catalogue(tensor("weight", ["l2"]), tensor("gradient", ["l2"]));
    expect(chooseStatistic(FACTS, all, NOTHING, false)).toMatchObject({
      role: "gradient",
      statistic: { name: "l2" },
      roles: ["gradient", "weight"],
    });
  });

  it("offers only what the chosen tensors have", () => {
    const all = catalogue(tensor("weight", ["l2"], true), tensor("gradient", ["l2"]));
    const names = (role: string) =>
      chooseStatistic(FACTS, all, { role, statistic: null }, false)!.statistics.map((s) => s.name);
    expect(names("weight")).toEqual(["l2", "update_ratio", "zero_percent", "nonfinite"]);
    expect(names("gradient")).toEqual(["l2", "nonfinite"]);
  });

  it("falls back where the address asks for what is not there", () => {
    const all = catalogue(tensor("gradient", ["l2"]));
    const choice = chooseStatistic(FACTS, all, { role: "activation", statistic: "update_ratio" }, false);
    expect(choice).toMatchObject({ role: "gradient", statistic: { name: "l2" } });
    expect(chooseStatistic(FACTS, catalogue(tensor("loss", [])), NOTHING, false)).toBeNull();
  });

  it("offers in a report what reports hold", () => {
    const all = catalogue(tensor("weight", ["l2"], true));
    const choice = chooseStatistic(FACTS, all, NOTHING, true)!;
    expect(choice.statistics.map((s) => s.name)).toEqual(["l2", "nonfinite"]);
  });
});
