#pragma once

// Single elements of a tensor, for rules whose statistic no reduction gives. Pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"

namespace smd::rules {

// The elements as doubles, in C order; a complex number becomes its real and imaginary part, so
// there are twice as many. Exact, except for integers beyond 2^53. `unsupported`: strings.
Result<std::vector<double>> to_doubles(const TensorView& tensor);

// The same in blocks that fit the cache: f(position of the first, numbers).
Status for_each_block(const TensorView& tensor,
                      const std::function<void(int64_t, std::span<const double>)>& f);

// Two tensors with the same number of elements side by side, until f(position of the first, numbers
// of a, numbers of b) says false. If one is complex, the other gets imaginary parts of zero.
Status for_each_pair(
    const TensorView& a, const TensorView& b,
    const std::function<bool(int64_t, std::span<const double>, std::span<const double>)>& f);
// The largest number that the type holds; nullopt: not a floating type.
std::optional<double> max_finite(DType dtype);

struct SpecialElements {
  int64_t nan_count = 0;
  int64_t positive_inf_count = 0;
  int64_t negative_inf_count = 0;
  int64_t first_index = -1;   // of the first element that is one of these; -1: none
  double largest_finite = 0;  // magnitude
};
// Complex numbers count by their real and imaginary parts.
Result<SpecialElements> find_special(const TensorView& tensor);

}  // namespace smd::rules
