#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind l2;
const ReductionKind l2 = {.name = "l2", .is_norm = true};

}  // namespace smd::reductions
