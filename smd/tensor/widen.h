#pragma once

// Small floats as float32, bfloat16 and float8 also back, bit by bit: widening loses nothing, not
// even the payload of a NaN, so narrowing restores the very bits. Pure functions.

#include <cstdint>
#include <span>

#include "smd/base/bytes.h"
#include "smd/tensor/dtype.h"

namespace smd {

// `dtype` is one of those for which is_stored_widened() holds; `out` has in.size()/size_of(dtype)
// elements.
void widen(DType dtype, ByteSpan in, std::span<float> out);

// The inverse, exact for what widen() made; other values are rounded towards zero.
void narrow(DType dtype, std::span<const float> in, std::span<std::byte> out);

// float16 as float32, exactly.
float half_to_float(uint16_t half);

}  // namespace smd
