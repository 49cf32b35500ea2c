#include "smd/reduce/number.h"

#include <bit>

namespace smd {

Number Number::real(DType dtype, double value) {
  const bool narrow = dtype == DType::float32;
  const uint64_t word =
      narrow ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
  return {dtype, std::bit_cast<std::array<std::byte, 8>>(word)};
}

Number Number::integer(DType dtype, uint64_t value) {
  const auto unused_bits = 8 * (sizeof value - size_of(dtype));
  const uint64_t word = value << unused_bits >> unused_bits;
  return {dtype, std::bit_cast<std::array<std::byte, 8>>(word)};
}

double Number::to_double() const {
  const std::byte* at = bits.data();
  switch (dtype) {
    case DType::float32: return static_cast<double>(load_le<float>(at));
    case DType::float64: return load_le<double>(at);
    case DType::int8: return load_le<int8_t>(at);
    case DType::int16: return load_le<int16_t>(at);
    case DType::int32: return load_le<int32_t>(at);
    case DType::int64: return static_cast<double>(load_le<int64_t>(at));
    case DType::uint16: return load_le<uint16_t>(at);
    case DType::uint32: return load_le<uint32_t>(at);
    case DType::uint64: return static_cast<double>(load_le<uint64_t>(at));
    default: return load_le<uint8_t>(at);
  }
}

}  // namespace smd
