#pragma once

// One number with its element type: what a reduction yields and a record stores. Plain value.

#include <array>
#include <cstddef>
#include <cstdint>

#include "smd/base/bytes.h"
#include "smd/tensor/dtype.h"

namespace smd {

// One number with its element type: float32, float64, boolean, or an integer type.
struct Number {
  DType dtype = DType::float64;
  // The element in the first size_of(dtype) bytes, zeros after it.
  alignas(8) std::array<std::byte, 8> bits{};

  // `dtype` is float32 or float64; the value is rounded to it, infinity where it does not fit.
  static Number real(DType dtype, double value);
  // `dtype` is boolean or an integer type; takes the low bytes, which is how integers wrap.
  static Number integer(DType dtype, uint64_t value);

  ByteSpan bytes() const { return ByteSpan(bits).first(size_of(dtype)); }
  double to_double() const;

  bool operator==(const Number&) const = default;
};

}  // namespace smd
