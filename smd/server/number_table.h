#pragma once

// One statistic of some tensors at some steps, step by step: what heat maps are made of. Grows at
// its end, so that a run that is watched live is read only once. Plain value.

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "smd/trial/matrix.h"

namespace smd::server {

// Stands for a number that was not recorded; other NaNs are numbers that were.
inline constexpr uint32_t kMissingBits = 0x7FC5AD0B;
inline float missing_number() { return std::bit_cast<float>(kMissingBits); }
inline bool is_missing(float number) { return std::bit_cast<uint32_t>(number) == kMissingBits; }
// Numbers beyond the range become its largest ones.
float to_float(double number);

struct NumberTable {
  std::vector<uint32_t> tensors;  // ids, of the columns
  std::vector<Step> steps;        // ascending, of the rows
  std::vector<float> numbers;     // row by row

  std::span<const float> row(size_t i) const {
    return std::span(numbers).subspan(i * tensors.size(), tensors.size());
  }
  size_t size_bytes() const { return numbers.size() * sizeof(float); }

  // A step after the last one, without any number yet.
  std::span<float> add_row(Step step);
  // The steps of a matrix whose rows are `tensors`; those up to the last one here are left out.
  void append(const Matrix& matrix);
  // Without the steps from `step` on.
  void cut(Step step);
};

}  // namespace smd::server
