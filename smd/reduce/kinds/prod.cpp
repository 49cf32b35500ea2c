#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind prod;
const ReductionKind prod = {.name = "prod"};

}  // namespace smd::reductions
