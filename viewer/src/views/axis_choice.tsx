// Whether charts have a linear or a logarithmic axis; the address of the page keeps it.

import { Alternatives } from "../parts/controls";
import { adjust, place } from "../state/place";

export function AxisChoice() {
  return (
    <Alternatives
      label="Axis"
      value={place.value.log ? "log" : "linear"}
      options={[
        { value: "linear", label: "linear" },
        { value: "log", label: "log" },
      ]}
      onChange={(next) => adjust({ log: next === "log" })}
    />
  );
}
