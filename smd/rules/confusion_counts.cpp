#include "smd/rules/confusion_counts.h"

#include <fmt/format.h>

#include <algorithm>

namespace smd::rules {
namespace {

constexpr int64_t kMostDense = 1024;

}  // namespace

ConfusionCounts::ConfusionCounts(int64_t class_count)
    : class_count_(class_count),
      dense_(class_count <= kMostDense ? static_cast<size_t>(class_count * class_count) : 0),
      label_totals_(static_cast<size_t>(class_count)),
      prediction_totals_(static_cast<size_t>(class_count)) {}

int64_t ConfusionCounts::classes_in(const ClassPairs& pairs) {
  int64_t largest = -1;
  for (int64_t label : pairs.labels) largest = std::max(largest, label);
  for (int64_t prediction : pairs.predictions) largest = std::max(largest, prediction);
  return largest + 1;
}

Status ConfusionCounts::add(const ClassPairs& pairs) {
  const auto check = [&](const std::vector<int64_t>& classes, std::string_view what) -> Status {
    for (int64_t one : classes) {
      if (one == kNoClass || (one >= 0 && one < class_count_)) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("A {} is {}; with {} classes it must be at least 0 and at most {}.",
                               what, one, class_count_, class_count_ - 1)};
    }
    return {};
  };
  SMD_RETURN_IF_ERROR(check(pairs.labels, "label"));
  SMD_RETURN_IF_ERROR(check(pairs.predictions, "prediction"));
  for (size_t i = 0; i < pairs.labels.size(); ++i) {
    const int64_t label = pairs.labels[i];
    const int64_t prediction = pairs.predictions[i];
    ++total_;
    ++label_totals_[static_cast<size_t>(label)];
    if (prediction == kNoClass) continue;
    ++prediction_totals_[static_cast<size_t>(prediction)];
    if (dense_.empty()) {
      ++sparse_[{label, prediction}];
    } else {
      ++dense_[static_cast<size_t>(label * class_count_ + prediction)];
    }
  }
  return {};
}

int64_t ConfusionCounts::at(int64_t label, int64_t prediction) const {
  if (!dense_.empty()) return dense_[static_cast<size_t>(label * class_count_ + prediction)];
  const auto found = sparse_.find({label, prediction});
  return found == sparse_.end() ? 0 : found->second;
}

int64_t ConfusionCounts::right_count() const {
  int64_t out = 0;
  for (int64_t i = 0; i < class_count_; ++i) out += at(i, i);
  return out;
}

}  // namespace smd::rules
