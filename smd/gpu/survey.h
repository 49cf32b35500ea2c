#pragma once

// What the blocks of survey_kernel.h found in a tensor, joined to its statistics: the same results
// as reduce() has for the same elements. Pure functions, thread-safe.
//
// Chunks are joined in their order, so the result does not depend on which block was first.

#include <span>

#include "smd/base/result.h"
#include "smd/gpu/survey_kernel.h"
#include "smd/reduce/nonfinite.h"
#include "smd/reduce/reduce.h"

namespace smd::gpu {

// Real numbers, integers and booleans; not complex numbers and strings.
bool can_survey(DType dtype);
// Not medians and products, which one pass without a copy cannot tell.
bool can_survey(const ReductionSet& reductions);

// Whether these need abs_second of the Partials.
bool needs_absolute_deviations(const ReductionSet& reductions);

// Joins the partials of one tensor; none: it has no elements, and no values. `request` asks for
// nothing that can_survey() refuses, and for no histogram. Counts are always set. Reuses the memory
// of `out`.
void finish_survey(DType dtype, std::span<const Partial> partials, const ReductionRequest& request,
                   ReductionResult& out);

NonFinite nonfinite_in(std::span<const Partial> partials);

}  // namespace smd::gpu
