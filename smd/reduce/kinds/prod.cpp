#include <cmath>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.prod; }

// Exponents are kept apart, so that the order of the factors does not matter.
long double oracle(std::span<const long double> values) {
  long double special = 1;  // product of the zeros, infinities and NaNs
  long double mantissa = 1;
  int exponent = 0;
  for (long double x : values) {
    if (x == 0 || !std::isfinite(x)) {
      special *= x;
      continue;
    }
    int shift = 0;
    mantissa = std::frexp(mantissa * x, &shift);
    exponent += shift;
  }
  return special == 1 ? std::ldexp(mantissa, exponent) : std::copysign(1.0L, mantissa) * special;
}

}  // namespace

extern const ReductionKind prod;
const ReductionKind prod = {
    .name = "prod", .needs = Needs::product, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
