#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind max;
const ReductionKind max = {.name = "max"};

}  // namespace smd::reductions
