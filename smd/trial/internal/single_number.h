#pragma once

// Which records may hold a single number, told without reading them. Pure function.

#include <cstdint>
#include <string_view>

namespace smd::internal {

// Records of a single number are not longer, whatever their name and up to rank 8: the name stands
// in the record once, and once more for each dimension.
inline uint64_t most_bytes_of_single(std::string_view name) {
  constexpr uint64_t kRest = 256;
  constexpr uint64_t kNames = 9;
  constexpr uint64_t kDimension = 16;
  return kRest + kNames * (name.size() + kDimension);
}

}  // namespace smd::internal
