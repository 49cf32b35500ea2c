#include <cmath>
#include <numeric>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) {
  return totals.real(std::sqrt(totals.squared_deviations / static_cast<double>(totals.count)), 1);
}

long double oracle(std::span<const long double> values) {
  const auto count = static_cast<long double>(values.size());
  const long double mean = std::accumulate(values.begin(), values.end(), 0.0L) / count;
  long double sum = 0;
  for (long double x : values) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / count);
}

}  // namespace

extern const ReductionKind std_dev;
const ReductionKind std_dev = {
    .name = "std", .needs = Needs::deviations, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
