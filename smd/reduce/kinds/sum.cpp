#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind sum;
const ReductionKind sum = {.name = "sum"};

}  // namespace smd::reductions
