#include <algorithm>
#include <cmath>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.max; }

long double oracle(std::span<const long double> values) {
  long double greatest = values[0];
  for (long double x : values) {
    if (std::isnan(x)) return x;
    greatest = std::max(greatest, x);
  }
  return greatest;
}

}  // namespace

extern const ReductionKind max;
const ReductionKind max = {
    .name = "max", .needs = Needs::extrema, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
