#include "smd/reduce/internal/median.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace smd::internal {

template <typename T>
double median(std::vector<T>& values) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto is_nan = [](T x) { return std::isnan(x); };
    if (std::any_of(values.begin(), values.end(), is_nan)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto upper = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return upper;
  return std::midpoint(static_cast<double>(*std::max_element(values.begin(), middle)), upper);
}

template double median(std::vector<float>&);
template double median(std::vector<double>&);
template double median(std::vector<int32_t>&);
template double median(std::vector<uint32_t>&);
template double median(std::vector<int64_t>&);
template double median(std::vector<uint64_t>&);

}  // namespace smd::internal
