#include <cmath>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.real(std::sqrt(totals.squares), 1); }

long double oracle(std::span<const long double> values) {
  long double squares = 0;
  for (long double x : values) squares += x * x;
  return std::sqrt(squares);
}

}  // namespace

extern const ReductionKind l2;
const ReductionKind l2 = {
    .name = "l2", .is_norm = true, .needs = Needs::moments, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
