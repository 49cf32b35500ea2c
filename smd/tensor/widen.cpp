#include "smd/tensor/widen.h"

#include <array>
#include <bit>

namespace smd {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u;

// Float32 bits of an 8-bit float with `kMantissa` mantissa bits and this exponent bias.
template <int kMantissa, int kBias, bool kHasInfinity>
constexpr uint32_t bits_of_float8(uint8_t x) {
  constexpr int kExponent = 7 - kMantissa;
  constexpr uint32_t kTop = (1u << kExponent) - 1;
  const uint32_t sign = static_cast<uint32_t>(x & 0x80) << 24;
  const uint32_t exponent = (x >> kMantissa) & kTop;
  uint32_t mantissa = x & ((1u << kMantissa) - 1);
  if (kHasInfinity && exponent == kTop) return sign | kInfinity | (mantissa << (23 - kMantissa));
  if (!kHasInfinity && (x & 0x7f) == 0x7f) return sign | kInfinity | (mantissa << (23 - kMantissa));
  if (exponent == 0) {
    if (mantissa == 0) return sign;
    int shift = 0;
    while ((mantissa & (1u << kMantissa)) == 0) {
      mantissa <<= 1;
      ++shift;
    }
    mantissa &= (1u << kMantissa) - 1;
    return sign | (static_cast<uint32_t>(127 - kBias + 1 - shift) << 23) |
           (mantissa << (23 - kMantissa));
  }
  return sign | ((exponent + 127 - kBias) << 23) | (mantissa << (23 - kMantissa));
}

template <int kMantissa, int kBias, bool kHasInfinity>
constexpr std::array<uint32_t, 256> float8_table() {
  std::array<uint32_t, 256> table{};
  for (int i = 0; i < 256; ++i) {
    table[i] = bits_of_float8<kMantissa, kBias, kHasInfinity>(static_cast<uint8_t>(i));
  }
  return table;
}

constexpr auto kE4m3fn = float8_table<3, 7, false>();
constexpr auto kE5m2 = float8_table<2, 15, true>();

const std::array<uint32_t, 256>& table_of(DType dtype) {
  return dtype == DType::float8_e4m3fn ? kE4m3fn : kE5m2;
}

// The entry with the greatest magnitude not above that of `bits`. Magnitudes grow with the code.
std::byte narrow_float8(const std::array<uint32_t, 256>& table, uint32_t bits) {
  const uint32_t magnitude = bits & 0x7fffffffu;
  int low = 0;
  int high = 127;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table[middle] <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<std::byte>(low | static_cast<int>(bits >> 31) << 7);
}

}  // namespace

void widen(DType dtype, ByteSpan in, std::span<float> out) {
  auto* to = reinterpret_cast<std::byte*>(out.data());
  if (dtype == DType::bfloat16) {
    for (size_t i = 0; i < out.size(); ++i) {
      store_le(to + 4 * i, static_cast<uint32_t>(load_le<uint16_t>(in.data() + 2 * i)) << 16);
    }
    return;
  }
  const auto& table = table_of(dtype);
  for (size_t i = 0; i < out.size(); ++i) store_le(to + 4 * i, table[static_cast<uint8_t>(in[i])]);
}

void narrow(DType dtype, std::span<const float> in, std::span<std::byte> out) {
  const auto* from = reinterpret_cast<const std::byte*>(in.data());
  for (size_t i = 0; i < in.size(); ++i) {
    const auto bits = load_le<uint32_t>(from + 4 * i);
    if (dtype == DType::bfloat16) {
      store_le(out.data() + 2 * i, static_cast<uint16_t>(bits >> 16));
    } else {
      out[i] = narrow_float8(table_of(dtype), bits);
    }
  }
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  constexpr uint32_t kHalfInfinity = 0x7c00;
  if (rest >= kHalfInfinity) return std::bit_cast<float>(sign | 0x7f800000u | rest << 13);
  // Scaling by a power of two moves the exponent, of subnormal numbers too.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

}  // namespace smd
