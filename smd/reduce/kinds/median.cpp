#include "smd/reduce/reduction.h"

namespace smd::reductions {

extern const ReductionKind median;
const ReductionKind median = {.name = "median"};

}  // namespace smd::reductions
