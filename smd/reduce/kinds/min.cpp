#include <algorithm>
#include <cmath>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.min; }

long double oracle(std::span<const long double> values) {
  long double least = values[0];
  for (long double x : values) {
    if (std::isnan(x)) return x;
    least = std::min(least, x);
  }
  return least;
}

}  // namespace

extern const ReductionKind min;
const ReductionKind min = {
    .name = "min", .needs = Needs::extrema, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
