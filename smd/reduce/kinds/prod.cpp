#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.prod; }

long double oracle(std::span<const long double> values) {
  long double product = 1;
  for (long double x : values) product *= x;
  return product;
}

}  // namespace

extern const ReductionKind prod;
const ReductionKind prod = {
    .name = "prod", .needs = Needs::product, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
