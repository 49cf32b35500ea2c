#pragma once

// Metrics that boosting libraries record without modes: "train-rmse" beside "validation-rmse" at
// the same step. Pure functions.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/rules/step_view.h"

namespace smd::rules {

// What the name of such a metric tells.
struct MetricName {
  std::string metric;  // "rmse", with the path before it: "fold_1/rmse"
  bool is_training = false;
  bool rises = false;  // better when larger, such as auc
};

// nullopt: it does not begin with "train-", "validation-", "valid-", "eval-" or "test-".
std::optional<MetricName> parse_metric_name(std::string_view tensor);

struct MetricPair {
  const TensorRow* train = nullptr;
  const TensorRow* validation = nullptr;
  bool rises = false;
};

// Those of `rows` that belong together: one metric of one worker. A training metric has as many
// partners as there are validation sets. In the order of the rows.
std::vector<MetricPair> find_metric_pairs(const StepView& step,
                                          std::span<const TensorRow* const> rows);

}  // namespace smd::rules
