#include "smd/rules/statistic.h"

#include <algorithm>
#include <array>

namespace smd::rules {
namespace {

using enum Statistic;

constexpr std::array<std::string_view, kStatisticCount> kNames = {
    "value",      "min",       "max",          "mean",      "median",   "std",      "variance",
    "sum",        "prod",      "l1",           "l2",        "abs_min",  "abs_max",  "abs_mean",
    "abs_median", "abs_std",   "abs_variance", "abs_sum",   "abs_prod", "abs_l1",   "abs_l2",
    "nan_count",  "inf_count", "zero_count",   "nonfinite", "has_nan",  "all_zero", "zero_percent",
};

constexpr StatisticSet kCounts = {nan_count, inf_count, zero_count,  nonfinite,
                                  has_nan,   all_zero,  zero_percent};

std::array<std::optional<Reduction>, kStatisticCount> make_reductions() {
  std::array<std::optional<Reduction>, kStatisticCount> out;
  for (size_t i = 0; i < kStatisticCount; ++i) {
    const auto parsed = parse_reduction(kNames[i]);
    if (parsed.ok()) out[i] = *parsed;
  }
  return out;
}

// Everything about a tensor that is the single number `x`.
void derive_from_single(double x, Statistics& s) {
  for (Statistic same : {min, max, mean, median, sum, prod}) {
    if (!s.has(same)) s.set(same, x);
  }
  for (Statistic magnitude :
       {l1, l2, abs_min, abs_max, abs_mean, abs_median, abs_sum, abs_prod, abs_l1, abs_l2}) {
    if (!s.has(magnitude)) s.set(magnitude, std::fabs(x));
  }
  for (Statistic spread : {std, variance, abs_std, abs_variance}) {
    if (!s.has(spread)) s.set(spread, x - x);  // NaN unless finite
  }
  s.set(nan_count, std::isnan(x) ? 1 : 0);
  s.set(inf_count, std::isinf(x) ? 1 : 0);
  s.set(zero_count, x == 0 ? 1 : 0);
}

void derive_from_counts(int64_t size, Statistics& s) {
  if (s.has(nan_count)) s.set(has_nan, s[nan_count] > 0 ? 1 : 0);
  if (s.has(nan_count) && s.has(inf_count)) {
    s.set(nonfinite, s[nan_count] > 0 || s[inf_count] > 0 ? 1 : 0);
  }
  if (s.has(zero_count) && size > 0) {
    s.set(all_zero, s[zero_count] == static_cast<double>(size) ? 1 : 0);
    s.set(zero_percent, 100 * s[zero_count] / static_cast<double>(size));
  }
}

// A minimum or maximum is NaN if and only if an element is.
void derive_from_extrema(Statistics& s) {
  if (!s.has(abs_max) && s.has(min) && s.has(max)) {
    const bool nan = std::isnan(s[min]) || std::isnan(s[max]);
    s.set(abs_max, nan ? s[min] + s[max] : std::max(std::fabs(s[min]), std::fabs(s[max])));
  }
  for (Statistic extreme : {abs_max, max, min}) {
    if (!s.has(has_nan) && s.has(extreme)) s.set(has_nan, std::isnan(s[extreme]) ? 1 : 0);
  }
  if (!s.has(nonfinite) && s.has(abs_max)) s.set(nonfinite, std::isfinite(s[abs_max]) ? 0 : 1);
  if (!s.has(all_zero) && s.has(abs_max)) s.set(all_zero, s[abs_max] == 0 ? 1 : 0);
  if (!s.has(zero_percent) && s.has(all_zero) && s[all_zero] == 1) s.set(zero_percent, 100);
  if (s.has(nonfinite) && s[nonfinite] == 0) {
    s.set(nan_count, 0);
    s.set(inf_count, 0);
  }
}

}  // namespace

std::string_view name_of(Statistic statistic) { return kNames[static_cast<size_t>(statistic)]; }

std::optional<Statistic> find_statistic(std::string_view name) {
  const auto parsed = parse_reduction(name);
  const std::string known = parsed.ok() ? parsed->name() : std::string(name);
  const auto at = std::find(kNames.begin(), kNames.end(), known);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<Statistic>(at - kNames.begin());
}

std::optional<Reduction> reduction_of(Statistic statistic) {
  static const auto reductions = make_reductions();
  return reductions[static_cast<size_t>(statistic)];
}

StatisticSet sources_of(StatisticSet wanted) {
  StatisticSet out = wanted;
  if (!wanted.empty()) out.add(value);
  const auto needs = [&](StatisticSet any_of, StatisticSet sources) {
    if (wanted.without(any_of) != wanted) out.merge(sources);
  };
  needs({abs_mean}, {l1, abs_l1});
  needs({variance}, {std});
  needs({std}, {variance});
  needs({abs_max}, {min, max});
  needs(kCounts, {min, max, abs_max});
  return out;
}

void derive(StatisticSet wanted, const Shape* shape, Statistics& s) {
  if (s.present.contains_all(wanted)) return;
  if (s.has(value)) return derive_from_single(s[value], s), derive_from_counts(1, s);
  int64_t size = -1;
  if (shape != nullptr) {
    const auto counted = element_count(*shape);
    if (counted.ok()) size = *counted;
  }
  if (!s.has(abs_mean) && size > 0 && shape->size() <= 1) {
    for (Statistic norm : {l1, abs_l1}) {
      if (s.has(norm)) s.set(abs_mean, s[norm] / static_cast<double>(size));
    }
  }
  if (!s.has(variance) && s.has(std)) s.set(variance, s[std] * s[std]);
  if (!s.has(std) && s.has(variance)) s.set(std, std::sqrt(s[variance]));
  derive_from_counts(size, s);
  derive_from_extrema(s);
  if (!s.has(zero_count) && size > 0 && s.has(all_zero) && s[all_zero] == 1) {
    s.set(zero_count, static_cast<double>(size));
  }
}

Status compute(const TensorView& tensor, StatisticSet wanted, Statistics& s) {
  if (tensor.dtype == DType::string || tensor.size() == 0) return {};
  ReductionRequest request;
  wanted.for_each([&](Statistic one) {
    if (const auto reduction = reduction_of(one)) request.reductions.add(*reduction);
    if (kCounts.contains(one)) request.count_special = true;
  });
  if (request.reductions.empty() && !request.count_special) return {};
  ReductionResult result;
  SMD_RETURN_IF_ERROR(reduce(tensor, request, result));
  wanted.for_each([&](Statistic one) {
    const auto reduction = reduction_of(one);
    const Number* found = reduction ? result.find(*reduction) : nullptr;
    if (found != nullptr) s.set(one, found->to_double());
  });
  if (request.count_special) {
    s.set(nan_count, static_cast<double>(result.nan_count));
    s.set(inf_count, static_cast<double>(result.inf_count));
    s.set(zero_count, static_cast<double>(result.zero_count));
    derive_from_counts(tensor.size(), s);
  }
  return {};
}

}  // namespace smd::rules
