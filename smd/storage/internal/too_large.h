#pragma once

// The refusal of a file that is larger than its reader expects. Pure function.

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "smd/base/result.h"

namespace smd::storage {

inline Error too_large(uint64_t size_bytes, std::string_view path) {
  return {ErrorCode::corrupt,
          fmt::format("The file has {} bytes, more than any of its kind: {}", size_bytes, path)};
}

}  // namespace smd::storage
