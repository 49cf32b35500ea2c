#include <algorithm>
#include <cmath>
#include <vector>

#include "smd/reduce/reduction.h"

namespace smd::reductions {
namespace {

Number finish(const Totals& totals) { return totals.real(totals.middle, 0); }

long double oracle(std::span<const long double> values) {
  std::vector<long double> sorted(values.begin(), values.end());
  for (long double x : sorted) {
    if (std::isnan(x)) return x;
  }
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace

extern const ReductionKind median;
const ReductionKind median = {
    .name = "median", .needs = Needs::middle, .finish = finish, .oracle = oracle};

}  // namespace smd::reductions
