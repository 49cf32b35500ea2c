#include <cmath>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.real(totals.magnitude, 1); }

long double oracle(std::span<const long double> values) {
  long double sum = 0;
  for (long double x : values) sum += std::abs(x);
  return sum;
}

}  // namespace

extern const ReductionKind l1;
const ReductionKind l1 = {
    .name = "l1", .is_norm = true, .needs = Needs::moments, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
