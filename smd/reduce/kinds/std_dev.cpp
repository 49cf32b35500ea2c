#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind std_dev;
const ReductionKind std_dev = {.name = "std"};

}  // namespace smd::reductions
