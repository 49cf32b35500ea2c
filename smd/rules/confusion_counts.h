#pragma once

// How often each label met each prediction. Small matrices are dense, large ones hold only what was
// counted. One thread at a time.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/rules/classes.h"

namespace smd::rules {

class ConfusionCounts final {
 public:
  explicit ConfusionCounts(int64_t class_count);
  // Wide enough for all of the pairs: 1 + the largest class of either.
  static int64_t classes_in(const ClassPairs& pairs);

  // Predictions of no class count in the totals of their labels only. invalid_argument: a class
  // below 0 or not below class_count(); nothing is added then.
  Status add(const ClassPairs& pairs);

  int64_t class_count() const { return class_count_; }
  int64_t at(int64_t label, int64_t prediction) const;
  int64_t label_total(int64_t label) const { return label_totals_[static_cast<size_t>(label)]; }
  int64_t prediction_total(int64_t prediction) const {
    return prediction_totals_[static_cast<size_t>(prediction)];
  }
  int64_t total() const { return total_; }
  // Pairs that are equal.
  int64_t right_count() const;
  // f(label, prediction, count) for counts above 0, by label and prediction.
  template <typename F>
  void for_each(F&& f) const {
    for (size_t i = 0; i < dense_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (dense_[i] > 0) f(at / class_count_, at % class_count_, dense_[i]);
    }
    for (const auto& [pair, count] : sparse_) f(pair.first, pair.second, count);
  }

 private:
  int64_t class_count_;
  std::vector<int64_t> dense_;
  std::map<std::pair<int64_t, int64_t>, int64_t> sparse_;
  std::vector<int64_t> label_totals_;
  std::vector<int64_t> prediction_totals_;
  int64_t total_ = 0;
};

}  // namespace smd::rules
