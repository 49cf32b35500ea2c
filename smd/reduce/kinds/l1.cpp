#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind l1;
const ReductionKind l1 = {.name = "l1", .is_norm = true};

}  // namespace smd::reductions
