#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind variance;
const ReductionKind variance = {.name = "variance"};

}  // namespace smd::reductions
