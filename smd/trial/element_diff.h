#pragma once

// How far two tensors of the same element type and shape are apart, in one pass over both.
// Pure functions, thread-safe.

#include <cstdint>
#include <limits>

#include "smd/tensor/tensor_view.h"

namespace smd {

// Elements a and b are equal within it if |a − b| ≤ absolute or |a − b| ≤ relative · max(|a|, |b|).
// Without tolerance they are equal if they compare equal: 0 and −0 do, and so do two NaNs.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

struct ElementDiff {
  int64_t elements = 0;
  int64_t differing = 0;  // beyond the tolerance; NaN against a number always is
  int64_t nan_only_in_a = 0;
  int64_t nan_only_in_b = 0;
  // Over all elements, infinite when a NaN or an infinity stands against something else.
  // The relative difference is |a − b| / max(|a|, |b|): at most 2 for finite numbers.
  double max_absolute = 0;
  double max_relative = 0;
  int64_t first = -1;  // position of the first differing element, in C order; -1: none
  // Of the differing element with the largest relative difference; absolute values of complex ones.
  int64_t worst = -1;
  double worst_a = 0;
  double worst_b = 0;

  bool equal() const { return differing == 0; }
  // What cannot be measured against each other.
  void set_far_apart() { max_absolute = max_relative = std::numeric_limits<double>::infinity(); }
};

// Both contiguous, of one element type other than string and of one shape.
ElementDiff compare_elements(const TensorView& a, const TensorView& b, const Tolerance& tolerance);
ElementDiff compare_numbers(double a, double b, const Tolerance& tolerance);

}  // namespace smd
