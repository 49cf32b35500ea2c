#pragma once

// The median, which no single pass can tell. Pure functions, thread-safe.

#include <cstdint>
#include <vector>

namespace smd::internal {

// NumPy's definition: the middle value, or the mean of the two middle ones; NaN if a value is.
// Reorders the values, of which there is at least one.
template <typename T>
double median(std::vector<T>& values);

extern template double median(std::vector<float>&);
extern template double median(std::vector<double>&);
extern template double median(std::vector<int32_t>&);
extern template double median(std::vector<uint32_t>&);
extern template double median(std::vector<int64_t>&);
extern template double median(std::vector<uint64_t>&);

}  // namespace smd::internal
