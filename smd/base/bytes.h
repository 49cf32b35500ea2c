#pragma once

// Raw memory as values: owned bytes, borrowed spans, little-endian integers.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace smd {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported");

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename T>
T load_le(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store_le(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace smd
