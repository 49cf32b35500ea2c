#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind min;
const ReductionKind min = {.name = "min"};

}  // namespace smd::reductions
