#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind mean;
const ReductionKind mean = {.name = "mean"};

}  // namespace smd::reductions
