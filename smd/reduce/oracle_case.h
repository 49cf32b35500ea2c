#pragma once

// For tests: elements of every type and kind, and what the oracles say of their statistics.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "smd/reduce/reduce.h"
#include "smd/tensor/widen.h"

namespace smd::oracle {

inline long double value_of_float16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const long double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<long double>::quiet_NaN()
                         : sign * std::numeric_limits<long double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(mantissa), -24);
  return sign * std::ldexp(static_cast<long double>(1024 + mantissa), exponent - 25);
}

template <typename T>
long double magnitude_at(const std::byte* at) {
  const auto re = static_cast<long double>(load_le<T>(at));
  const auto im = static_cast<long double>(load_le<T>(at + sizeof(T)));
  return static_cast<long double>(static_cast<double>(std::hypot(re, im)));
}

// One element; of a complex number its absolute value.
inline long double value_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::float16: return value_of_float16(load_le<uint16_t>(at));
    case DType::float32: return static_cast<long double>(load_le<float>(at));
    case DType::float64: return static_cast<long double>(load_le<double>(at));
    case DType::int8: return load_le<int8_t>(at);
    case DType::int16: return load_le<int16_t>(at);
    case DType::int32: return load_le<int32_t>(at);
    case DType::int64: return static_cast<long double>(load_le<int64_t>(at));
    case DType::uint8: return load_le<uint8_t>(at);
    case DType::uint16: return load_le<uint16_t>(at);
    case DType::uint32: return load_le<uint32_t>(at);
    case DType::uint64: return static_cast<long double>(load_le<uint64_t>(at));
    case DType::boolean: return load_le<uint8_t>(at) != 0 ? 1 : 0;
    case DType::complex64: return magnitude_at<float>(at);
    case DType::complex128: return magnitude_at<double>(at);
    default: {
      float wide = 0;
      widen(dtype, {at, size_of(dtype)}, {&wide, 1});
      return static_cast<long double>(wide);
    }
  }
}

// What the elements are like.
enum class Flavour {
  ordinary,
  integral,
  distant,
  any_bits,
  zeros,
  subnormal,
  huge,
  with_inf,
  with_nan
};
inline constexpr Flavour kFlavours[] = {Flavour::ordinary, Flavour::integral, Flavour::distant,
                                        Flavour::any_bits, Flavour::zeros,    Flavour::subnormal,
                                        Flavour::huge,     Flavour::with_inf, Flavour::with_nan};

class Elements final {
 public:
  explicit Elements(uint32_t seed) : random_(seed) {}

  void fill(DType dtype, Flavour flavour, std::span<std::byte> out) {
    const size_t item = size_of(dtype);
    const size_t count = out.size() / item;
    const size_t special = count == 0 ? 0 : random_() % count;
    for (size_t i = 0; i < count; ++i) {
      std::byte* at = out.data() + i * item;
      if (info_of(dtype).kind == DTypeKind::complex) {
        const DType part = item == 8 ? DType::float32 : DType::float64;
        put(part, real(part, flavour, i == special), at);
        put(part, real(part, flavour, false), at + item / 2);
      } else if (info_of(dtype).kind == DTypeKind::floating) {
        put(dtype, real(dtype, flavour, i == special), at);
      } else {
        const uint64_t bits = integer(flavour, item);
        std::memcpy(at, &bits, item);
      }
    }
  }

 private:
  // Floats of every width are made from a float64 and cut to the width.
  double real(DType dtype, Flavour flavour, bool special) {
    const bool wide = dtype == DType::float64;
    const bool tiny = dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
    const double x = normal_(random_);
    switch (flavour) {
      case Flavour::integral: return std::floor(8 * x);
      case Flavour::distant: return tiny ? 256 : 1000 + x;
      case Flavour::any_bits:
        return std::ldexp(x, static_cast<int>(random_() % (wide   ? 900
                                                           : tiny ? 8
                                                                  : 24)) -
                                 (wide ? 450 : 10));
      case Flavour::zeros: return random_() % 2 == 0 ? 0.0 : std::max(x, -0.0);
      case Flavour::subnormal:
        return wide                      ? std::ldexp(x, -1060)
               : dtype == DType::float32 ? std::ldexp(x, -135)
                                         : std::ldexp(x, -13);
      case Flavour::huge:
        return wide                      ? std::ldexp(x, 1021)
               : tiny                    ? 100 * x
               : dtype == DType::float16 ? 10000 * x
                                         : std::ldexp(x, 124);
      case Flavour::with_inf: return special ? std::copysign(HUGE_VAL, x) : x;
      case Flavour::with_nan: return special ? std::nan("") : x;
      default: return x;
    }
  }

  uint64_t integer(Flavour flavour, size_t item) {
    switch (flavour) {
      case Flavour::ordinary:
      case Flavour::integral: return random_() % 7 - (item == 8 ? 0 : 3);
      case Flavour::distant: return 100 + random_() % 3;
      case Flavour::zeros: return random_() % 2;
      case Flavour::huge: return (uint64_t{1} << (8 * item - 1)) - random_() % 2;
      default: return random_();
    }
  }

  static void put(DType dtype, double x, std::byte* at) {
    const auto narrow_x = static_cast<float>(x);
    switch (dtype) {
      case DType::float64: return store_le(at, x);
      case DType::float32: return store_le(at, narrow_x);
      case DType::float16: return store_le(at, float16_of(narrow_x));
      default: return narrow(dtype, {&narrow_x, 1}, {at, size_of(dtype)});
    }
  }

  // Rounded towards zero.
  static uint16_t float16_of(float x) {
    const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
    uint16_t low = 0;
    if (std::isnan(x)) return 0x7e01;
    for (uint16_t bit = 0x4000; bit != 0; bit = static_cast<uint16_t>(bit >> 1)) {
      const auto next = static_cast<uint16_t>(low | bit);
      if (next <= 0x7c00 && value_of_float16(next) <= static_cast<long double>(std::abs(x)))
        low = next;
    }
    return static_cast<uint16_t>(low | sign);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

struct Expected {
  long double value;
  long double tolerance;
};

// The error that rounding may bring: sums are as good as the sum of magnitudes, the rest relative.
inline Expected expected_of(const ReductionKind& kind, std::span<const long double> values,
                            DType result) {
  const bool narrow = result == DType::float32;
  const long double relative = narrow ? 2e-7L : 2e-12L;
  Expected out{kind.oracle(values), 0};
  long double sum = 0;
  long double most = 0;
  for (long double x : values) {
    sum += std::abs(x);
    most = std::max(most, std::abs(x));
  }
  const auto count = static_cast<long double>(values.size());
  const long double least = narrow ? 1.5e-45L : 5e-324L;
  out.tolerance = relative * std::abs(out.value) + least;
  if (kind.name == "sum") out.tolerance += 1e-14L * sum;
  if (kind.name == "mean") out.tolerance += 1e-14L * sum / count;
  if (kind.name == "median") out.tolerance += 1e-15L * most;
  if (kind.name == "std") out.tolerance += 1e-15L * most;
  if (kind.name == "variance") out.tolerance += 1e-15L * most * 1e-15L * most;
  return out;
}

inline uint64_t wrapped(bool product, bool abs, DType dtype, ByteSpan bytes) {
  const size_t item = size_of(dtype);
  uint64_t out = product ? 1 : 0;
  for (size_t at = 0; at < bytes.size(); at += item) {
    const long double x = value_at(dtype, bytes.data() + at);
    const auto magnitude = static_cast<uint64_t>(std::abs(x));
    const uint64_t bits = x < 0 && !abs ? -magnitude : magnitude;
    out = product ? out * bits : out + bits;
  }
  return out;
}

inline bool is_integral(DType dtype) {
  const DTypeKind kind = info_of(dtype).kind;
  return kind != DTypeKind::floating && kind != DTypeKind::complex;
}

class Case final {
 public:
  Case(DType dtype, ByteSpan bytes) : dtype_(dtype), bytes_(bytes) {
    for (size_t at = 0; at < bytes.size(); at += size_of(dtype)) {
      plain_.push_back(value_at(dtype, bytes.data() + at));
      abs_.push_back(std::abs(plain_.back()));
    }
  }

  void check_values(const ReductionResult& result) {
    for (const auto& [reduction, number] : result.values) check(reduction, number);
  }

  void check_counts(const ReductionResult& result) const {
    const auto count = [this](auto&& test) { return std::ranges::count_if(plain_, test); };
    EXPECT_EQ(result.nan_count, count([](long double x) { return std::isnan(x); }));
    EXPECT_EQ(result.inf_count, count([](long double x) { return std::isinf(x); }));
    EXPECT_EQ(result.zero_count, count([](long double x) { return x == 0; }));
  }

 private:
  void check(Reduction r, const Number& number) {
    SCOPED_TRACE(r.name());
    const bool exact = r.op() == "sum" || r.op() == "prod";
    if (exact && is_integral(dtype_)) {
      EXPECT_EQ(load_le<uint64_t>(number.bits.data()),
                wrapped(r.op() == "prod", r.abs(), dtype_, bytes_));
      return;
    }
    auto& known = known_[r.id()];
    if (!known) known = expected_of(r.kind(), r.abs() ? abs_ : plain_, number.dtype);
    const auto actual = static_cast<long double>(number.to_double());
    const long double most = number.dtype == DType::float32 ? std::numeric_limits<float>::max()
                                                            : std::numeric_limits<double>::max();
    if (std::isnan(known->value)) {
      EXPECT_TRUE(std::isnan(actual)) << actual;
    } else if (std::abs(known->value) > most) {
      EXPECT_TRUE(std::isinf(actual) && std::signbit(actual) == std::signbit(known->value))
          << actual;
    } else {
      EXPECT_LE(std::abs(actual - known->value), known->tolerance)
          << actual << " for " << known->value;
    }
  }

  DType dtype_;
  ByteSpan bytes_;
  std::vector<long double> plain_, abs_;
  std::optional<Expected> known_[32];
};

inline std::vector<DType> numeric_types() {
  std::vector<DType> out;
  for (size_t i = 0; i + 1 < kDTypeCount; ++i) out.push_back(static_cast<DType>(i));
  return out;
}

}  // namespace smd::oracle
