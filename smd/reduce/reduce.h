#pragma once

// Statistics of a tensor in one pass over its memory (median apart).
// Pure functions, thread-safe; the CPU's best vector instructions are chosen at run time.

#include <cstdint>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/reduce/histogram.h"
#include "smd/reduce/number.h"
#include "smd/reduce/reduction.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

struct ReductionRequest {
  ReductionSet reductions;
  // Also count NaNs, infinities and zeros.
  bool count_special = false;
  // Also count elements by bucket.
  bool histogram = false;
};

struct ReductionResult {
  // In the order of ReductionSet::for_each; those the element type does not have are missing.
  std::vector<std::pair<Reduction, Number>> values;
  int64_t nan_count = 0;
  int64_t inf_count = 0;
  int64_t zero_count = 0;
  Histogram histogram;  // of complex numbers' absolute values; empty unless asked for

  const Number* find(Reduction r) const;
};

// Result types: float16, bfloat16, float8, float32 → float32; float64 → float64; integers and
// booleans: min and max keep the type, sum and prod are int64 or uint64 (wrapping), everything else
// float64. Absolute values of signed integers are unsigned of the same width, so abs_max of int8
// −128 is the uint8 128 and abs_sum of it a uint64. Complex numbers have norms and absolute
// reductions only, as float32 for complex64 and float64 for complex128.
//
// NaN and infinity behave as in NumPy, with one exception: a product depends on its factors, not on
// their order, so a zero among finite factors makes it zero however large the others are. Squares
// beyond the range of float64 are scaled, at the price of a second pass.
//
// A tensor without elements gives no values. Complex numbers are counted by their absolute values.
// Reuses the memory of `out`; allocates for nothing but medians and strided views.
Status reduce(const TensorView& tensor, const ReductionRequest& request, ReductionResult& out);

// True if the tensor holds a NaN; reads no further than the first block that has one.
Result<bool> contains_nan(const TensorView& tensor);

}  // namespace smd
