#pragma once

// How often the units of a layer are active: in how many samples of a batch a condition holds for
// them. Pure functions, thread-safe.

#include <cstdint>
#include <optional>
#include <vector>

#include "smd/base/result.h"
#include "smd/rules/parameters.h"
#include "smd/tensor/tensor_view.h"

namespace smd::rules {

// Which elements belong to one unit: (outer, unit, inner) in C order.
struct UnitLayout {
  int64_t outer = 1;
  int64_t units = 1;
  int64_t inner = 1;

  int64_t samples() const { return outer * inner; }
};

// Without an axis the first one holds the samples and each place in the others is a unit; a vector
// is one sample. With it, each index of that axis is a unit, and all other axes hold samples;
// negative ones count from the end. nullopt: the shape has no such axis.
std::optional<UnitLayout> unit_layout(const Shape& shape, std::optional<int64_t> unit_axis);

// Strings and complex numbers have none.
bool has_order(DType dtype);

// Open at both ends. Without an upper end, infinity is active; NaN never is.
struct ActiveRange {
  double above = 0;
  std::optional<double> below = std::nullopt;
};

// For each unit the number of samples in which it is active. `unsupported`: without order.
Result<std::vector<int64_t>> count_active(const TensorView& tensor, const UnitLayout& layout,
                                          const ActiveRange& range);

// Whether it is active in less than so many percent of its samples.
inline bool is_inactive(int64_t active, int64_t samples, double percent) {
  return 100 * static_cast<double>(active) / static_cast<double>(samples) < percent;
}

// For parameter tables.
inline constexpr ParameterSpec kThresholdInactivity = {
    .name = "threshold_inactivity",
    .type = ParameterType::real,
    .default_text = "1.0",
    .help = "A unit counts when it is active in less than this many percent of the samples.",
    .range = "[0,100]"};
inline constexpr ParameterSpec kThresholdLayer = {
    .name = "threshold_layer",
    .type = ParameterType::real,
    .default_text = "50.0",
    .help = "Fires when more than this many percent of a layer's units count.",
    .range = "[0,100]"};
inline constexpr ParameterSpec kUnitAxis = {
    .name = "unit_axis",
    .type = ParameterType::integer,
    .default_text = "",
    .help =
        "Each index of this axis is a unit, such as 1 for the channels of a convolution; not "
        "given, each place outside of the batch axis is one.",
    .is_extension = true};

}  // namespace smd::rules
