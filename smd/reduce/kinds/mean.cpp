#include <numeric>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) {
  return totals.real(totals.total / static_cast<double>(totals.count), 1);
}

long double oracle(std::span<const long double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0L) /
         static_cast<long double>(values.size());
}

}  // namespace

extern const ReductionKind mean;
const ReductionKind mean = {
    .name = "mean", .needs = Needs::moments, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
