#pragma once

// The element types that results of a tensor have. Pure functions.

#include "smd/tensor/dtype.h"

namespace smd {

// Of absolute values: the unsigned type for signed integers.
DType magnitude_type(DType dtype);

// Of sums and products of integers: 64 bits, wrapping.
DType sum_type(DType dtype);

// Of everything that is neither an element nor a sum of integers: float32 or float64.
DType real_type(DType dtype);

}  // namespace smd
