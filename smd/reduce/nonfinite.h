#pragma once

// Counts what is not a number in a tensor. Pure function, thread-safe.

#include <cstdint>

#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

struct NonFinite {
  int64_t nan = 0;
  int64_t positive_inf = 0;
  int64_t negative_inf = 0;

  int64_t total() const { return nan + positive_inf + negative_inf; }
  bool operator==(const NonFinite&) const = default;
};

// Integers and booleans have none. Complex numbers count once, by their absolute value, so that
// every infinity among them is a positive one.
Result<NonFinite> count_nonfinite(const TensorView& tensor);

}  // namespace smd
