#include "smd/hook/bad_tensors.h"

#include <algorithm>
#include <cmath>

namespace smd {
namespace {

bool is_finite(const Number& number) {
  return info_of(number.dtype).kind != DTypeKind::floating || std::isfinite(number.to_double());
}

}  // namespace

Result<bool> BadTensors::see(const StepInfo& step, std::string_view name, const TensorView& tensor,
                             const ReductionResult& results) {
  const bool looks_good = std::all_of(results.values.begin(), results.values.end(),
                                      [](const auto& pair) { return is_finite(pair.second); });
  if (looks_good) return false;
  // A sum or a product can overflow although every element is finite.
  SMD_TRY(const NonFinite counts, count_nonfinite(tensor));
  return see(step, name, counts);
}

bool BadTensors::see(const StepInfo& step, std::string_view name, const NonFinite& counts) {
  if (counts.total() == 0) return false;
  if (counts.total() == counts.negative_inf && is_mask(step, name)) return false;
  return add(step, {.name = std::string(name), .counts = counts});
}

bool BadTensors::see(const StepInfo& step, std::string_view name,
                     std::span<const std::pair<std::string, Number>> results) {
  // Sums and norms of finite elements can be infinite, but never NaN.
  bool bad = false;
  bool only_negative = true;
  for (const auto& [label, number] : results) {
    if (is_finite(number)) continue;
    const double value = number.to_double();
    const bool element =
        label == "min" || label == "max" || label == "abs_max" || label == "abs_min";
    bad = bad || element || std::isnan(value);
    only_negative = only_negative && !std::isnan(value) && (label == "abs_max" || value < 0);
  }
  if (bad && only_negative && is_mask(step, name)) return false;
  return bad && add(step, {.name = std::string(name), .counts = std::nullopt});
}

bool BadTensors::is_mask(const StepInfo& step, std::string_view name) {
  if (!mode_seen_[index_of(step.mode)]) masks_.emplace(name);
  return masks_.find(name) != masks_.end();
}

bool BadTensors::add(const StepInfo& step, BadTensor bad) {
  const bool first = bad_.empty();
  if (first) step_ = step;
  if (step.step != step_.step) return false;
  ++count_;
  if (bad_.size() <= kListed) bad_.push_back(std::move(bad));
  return first;
}

}  // namespace smd
