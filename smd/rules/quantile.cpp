#include "smd/rules/quantile.h"

#include <algorithm>
#include <cmath>

namespace smd::rules {

double quantile(std::span<double> numbers, double q) {
  const double position = static_cast<double>(numbers.size() - 1) * q;
  const auto below = static_cast<std::ptrdiff_t>(std::floor(position));
  const auto at = numbers.begin() + below;
  std::nth_element(numbers.begin(), at, numbers.end());
  const double share = position - static_cast<double>(below);
  if (share == 0 || at + 1 == numbers.end()) return *at;
  return *at + (*std::min_element(at + 1, numbers.end()) - *at) * share;
}

}  // namespace smd::rules
