#pragma once

// reduce() and contains_nan() with a given instruction set, so that tests can try each of them.
// Pure functions, thread-safe.

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/reduce.h"

namespace smd::internal {

Status reduce_with(const Kernels& kernels, const TensorView& tensor,
                   const ReductionRequest& request, ReductionResult& out);

Result<bool> contains_nan_with(const Kernels& kernels, const TensorView& tensor);

}  // namespace smd::internal
