#pragma once

// How many elements of a tensor lie between which bounds. The bounds grow by a tenth from 1e-12 to
// 1e20 on both sides of zero, as those of TensorBoard's own writers do. Plain value.

#include <cstdint>
#include <vector>

namespace smd {

struct Histogram {
  int64_t count = 0;         // of all elements, also of those in no bucket
  int64_t finite_count = 0;  // of those that are neither NaN nor infinite

  // Of the finite elements, in float64.
  double min = 0;
  double max = 0;
  double sum = 0;
  double sum_squares = 0;

  // The buckets from the first to the last that holds an element, after an empty one that ends
  // where the first begins. A bucket holds its left bound and not its right one, which is the
  // limit; NaN, infinities and values beyond ±9.9e19 are in none. Both empty: nothing is in any.
  std::vector<double> limits;
  std::vector<double> counts;
};

// All bounds, from the least to the greatest.
const std::vector<double>& histogram_bounds();

}  // namespace smd
