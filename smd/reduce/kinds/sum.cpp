#include <numeric>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.sum; }

long double oracle(std::span<const long double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0L);
}

}  // namespace

extern const ReductionKind sum;
const ReductionKind sum = {.name = "sum", .needs = Needs::sum, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
