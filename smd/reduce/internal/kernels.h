#pragma once

// The loops over one block of elements, once per instruction set, and the choice among them.
// A block is some thousand aligned elements that stay in the cache, so a tensor is read from memory
// once however many of these loops its reductions need. Pure functions, thread-safe.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "smd/tensor/dtype.h"

namespace smd::internal {

// Elements per block, at most.
inline constexpr size_t kBlockElements = 2048;
// Of blocks that are read where they lie: what is done once per block no longer counts.
inline constexpr size_t kLongBlockElements = 8 * kBlockElements;

// |x| of the most negative integer needs the unsigned type.
template <typename T>
struct MagnitudeOf {
  using type = T;
};
template <std::signed_integral T>
struct MagnitudeOf<T> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using Magnitude = typename MagnitudeOf<T>::type;

// All four are NaN if an element is.
template <typename T>
struct Extrema {
  T min, max;
  Magnitude<T> abs_min, abs_max;
};

// |x|, also of the most negative integer.
template <typename T>
Magnitude<T> magnitude_of(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(x);
  } else {
    const auto bits = static_cast<Magnitude<T>>(x);
    return x < 0 ? static_cast<Magnitude<T>>(Magnitude<T>{0} - bits) : bits;
  }
}

// What is subtracted from values and from absolute values before they are squared.
struct Shift {
  double plain = 0;
  double abs = 0;
};

struct ShiftedSums {
  double first = 0;   // Σ(x − shift)
  double second = 0;  // Σ(x − shift)²
};

template <typename T>
struct Survey {
  Extrema<T> extrema;  // means nothing if plain.first is NaN
  ShiftedSums plain;   // of the values
  ShiftedSums abs;     // of the absolute values
};

// mantissa · 2^exponent with 1 ≤ |mantissa| < 2: a product that neither overflows nor underflows.
struct Product {
  double mantissa = 1;
  int64_t exponent = 0;

  void merge(const Product& other);
  double to_double() const;
};

struct SpecialCounts {
  int64_t nan = 0;
  int64_t inf = 0;
  int64_t zero = 0;
};

// Blocks have at least one element and at most kLongBlockElements.
template <typename T>
struct ElementKernels {
  Extrema<T> (*extrema)(const T* block, size_t count) = nullptr;
  SpecialCounts (*count_special)(const T* block, size_t count) = nullptr;

  // float, double and int32_t only. The cheaper one for values leaves out abs.second and
  // extrema.abs_min, and takes no shift for absolute values.
  Survey<T> (*survey_values)(const T* block, size_t count, Shift shift) = nullptr;
  Survey<T> (*survey_all)(const T* block, size_t count, Shift shift) = nullptr;

  // float and double only. Infinities count as one, so only the sign of an infinite product is
  // right. No zeros, no NaN, and no subnormal float64.
  Product (*product)(const T* block, size_t count) = nullptr;
};

// Elements as the wider type that computes them; `from` is aligned for its type, `to` for a vector.
template <typename From, typename To>
using Convert = void (*)(const From* from, size_t count, To* to);

struct Kernels {
  std::string_view target;  // the instruction set, by its name in Highway: "AVX3", "SCALAR"

  ElementKernels<float> float32;
  ElementKernels<double> float64;
  ElementKernels<int32_t> int32;
  ElementKernels<int64_t> int64;
  ElementKernels<uint64_t> uint64;

  Convert<uint16_t, float> from_float16;   // from its bits
  Convert<uint16_t, float> from_bfloat16;  // from its bits
  Convert<int8_t, int32_t> from_int8;
  Convert<int16_t, int32_t> from_int16;
  Convert<uint8_t, int32_t> from_uint8;
  Convert<uint16_t, int32_t> from_uint16;
  Convert<uint8_t, int32_t> from_boolean;  // whatever is not zero is one
  Convert<uint32_t, int64_t> from_uint32;
  Convert<int64_t, double> from_int64;
  Convert<uint64_t, double> from_uint64;
  // Times 2^exponent; `to` may be `from`.
  void (*scale)(const double* from, size_t count, int exponent, double* to);

  // True if an element without its sign bit is above `limit`: how every format spells NaN.
  bool (*any_above_8)(const int8_t* block, size_t count, int8_t limit);
  bool (*any_above_16)(const int16_t* block, size_t count, int16_t limit);
  bool (*any_above_32)(const int32_t* block, size_t count, int32_t limit);
  bool (*any_above_64)(const int64_t* block, size_t count, int64_t limit);

  template <typename T>
  const ElementKernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return float32;
    } else if constexpr (std::is_same_v<T, double>) {
      return float64;
    } else if constexpr (std::is_same_v<T, int32_t>) {
      return int32;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return int64;
    } else {
      return uint64;
    }
  }
};

// The best this machine can run.
const Kernels& best_kernels();

// All that this machine can run; the tests hold each against the oracles.
std::vector<const Kernels*> available_kernels();

}  // namespace smd::internal
