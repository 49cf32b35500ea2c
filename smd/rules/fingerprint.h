#pragma once

// Enough of a tensor to tell later, or beside another worker, whether it is the same: a 64-bit hash
// of its elements where they were saved, and all saved statistics. Plain value.

#include <cstdint>
#include <optional>
#include <string>

#include "smd/base/result.h"
#include "smd/rules/statistic.h"
#include "smd/rules/step_view.h"

namespace smd::rules {

struct Fingerprint {
  DType dtype = DType::float32;
  std::optional<Shape> shape;    // where it is known
  std::optional<uint64_t> hash;  // of the elements
  Statistics statistics{};

  // Reads the elements if they were saved.
  static Result<Fingerprint> of(const StepView& step, const TensorRow& row);
  bool empty() const { return !hash && statistics.present.empty(); }
};

// What a rule must ask for as context.
StatisticSet fingerprint_statistics();

struct Comparison {
  enum class Outcome : uint8_t { equal, different, unlike };
  // unlike: of other shapes, or nothing is known of both.
  Outcome outcome = Outcome::unlike;
  std::string by;         // "values", or the statistic that differs, or "statistics"
  double difference = 0;  // of that statistic
};

// Statistics that pick an element must be the same; those that add up elements may differ by
// `tolerance`, relative to the larger one, as other processors add in another order.
Comparison compare(const Fingerprint& a, const Fingerprint& b, double tolerance);

}  // namespace smd::rules
