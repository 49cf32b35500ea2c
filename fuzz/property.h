#pragma once

// What a fuzz target demands of the code under test: a broken property ends the process, which
// libFuzzer reports with the input that broke it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "smd/base/bytes.h"

#define SMD_FUZZ_REQUIRE(condition)                                               \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                               \
    }                                                                             \
  } while (false)

namespace smd::fuzz {

inline ByteSpan input_bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view input_text(const uint8_t* data, size_t size) {
  return as_text(input_bytes(data, size));
}

}  // namespace smd::fuzz
