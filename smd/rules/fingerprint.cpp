#include "smd/rules/fingerprint.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace smd::rules {
namespace {

constexpr StatisticSet kPicked = {Statistic::value,     Statistic::min,     Statistic::max,
                                  Statistic::median,    Statistic::abs_min, Statistic::abs_max,
                                  Statistic::abs_median};
constexpr StatisticSet kAdded = {Statistic::mean,         Statistic::std,      Statistic::variance,
                                 Statistic::sum,          Statistic::prod,     Statistic::l1,
                                 Statistic::l2,           Statistic::abs_mean, Statistic::abs_std,
                                 Statistic::abs_variance, Statistic::abs_sum,  Statistic::abs_prod,
                                 Statistic::abs_l1,       Statistic::abs_l2};

uint64_t mix(uint64_t hash, uint64_t word) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  hash = (hash ^ word) * kFactor;
  return hash ^ (hash >> 32);
}

uint64_t hash_of(ByteSpan bytes) {
  uint64_t hash = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    hash = mix(hash, word);
  }
  uint64_t rest = 0;
  if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  return mix(hash, rest);
}

bool is_same(double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace

StatisticSet fingerprint_statistics() {
  StatisticSet out = kPicked;
  out.merge(kAdded);
  return out;
}

Result<Fingerprint> Fingerprint::of(const StepView& step, const TensorRow& row) {
  Fingerprint out;
  if (row.shape != nullptr) out.shape = *row.shape;
  fingerprint_statistics().for_each([&](Statistic one) {
    if (row.has(one)) out.statistics.set(one, step.number(row, one));
  });
  if (row.has_value && !row.has(Statistic::value)) {
    SMD_TRY(const TensorValue* value, step.value(row));
    out.dtype = value->dtype;
    out.shape = value->shape;
    if (value->dtype != DType::string) out.hash = hash_of(value->elements);
  }
  return out;
}

Comparison compare(const Fingerprint& a, const Fingerprint& b, double tolerance) {
  using Outcome = Comparison::Outcome;
  if (a.shape && b.shape && *a.shape != *b.shape) return {};
  if (a.hash && b.hash) {
    if (a.dtype != b.dtype) return {};
    return {.outcome = *a.hash == *b.hash ? Outcome::equal : Outcome::different, .by = "values"};
  }
  Comparison out;
  fingerprint_statistics().for_each([&](Statistic one) {
    if (out.outcome == Outcome::different || !a.statistics.has(one) || !b.statistics.has(one)) {
      return;
    }
    const double x = a.statistics[one];
    const double y = b.statistics[one];
    if (is_same(x, y, kAdded.contains(one) ? tolerance : 0)) {
      out = {.outcome = Outcome::equal, .by = "statistics"};
    } else {
      out = {.outcome = Outcome::different,
             .by = std::string(name_of(one)),
             .difference = std::fabs(x - y)};
    }
  });
  return out;
}

}  // namespace smd::rules
