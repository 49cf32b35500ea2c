#pragma once

// What a training of boosted trees tells about itself: gathers numbers step by step and puts them
// into one document. Tasks it knows: binary and multi-class classification, regression, ranking.
// One thread at a time.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json.h"
#include "smd/types/step.h"

namespace smd::rules {

enum class BoostingTask : uint8_t { unknown, binary, multiclass, regression, ranking };
// "unknown", "binary classification", "multi-class classification", "regression", "ranking".
std::string_view name_of(BoostingTask task);

class BoostingReport final {
 public:
  // Labels and predictions of the same samples.
  struct Samples {
    std::vector<double> labels;
    std::vector<double> predictions;  // `width` for each label
    size_t width = 1;
  };

  // Within a step: parameters first, then the rest in any order. Steps in increasing order.
  void set_parameter(const std::string& name, Json value);
  // A tensor such as "validation-rmse".
  void add_metric(const std::string& tensor, Step step, double value);
  // `kind`: "weight", "gain", "cover". The newest step replaces the ones before.
  void add_importance(const std::string& kind, const std::string& feature, Step step, double value);
  // As many predictions as labels, times the width. Samples whose label is NaN are left out.
  void add_samples(Step step, Samples samples);

  // From the parameter "objective" or else from the newest labels.
  BoostingTask task() const;
  // The sections by name, each with its numbers or with a sentence "missing".
  Json to_json() const;

 private:
  struct Series {
    std::vector<Step> steps;
    std::vector<double> values;
  };
  struct Importances {
    Step step = -1;
    std::map<std::string, double> features;
  };

  std::string objective() const;
  bool is_classification() const;
  // The class of each prediction, as a label; NaN: none.
  std::vector<double> predicted_labels(const Samples& samples) const;
  void add_class_accuracy(Step step, const Samples& samples);
  void add_target_errors(Step step, const Samples& samples);

  Json label_section() const;
  Json loss_section() const;
  Json importance_section() const;
  Json confusion_section() const;
  Json class_accuracy_section() const;
  Json roc_section() const;
  Json residual_section() const;
  Json target_error_section() const;

  std::map<std::string, Json> parameters_;
  std::map<std::string, Series> metrics_;                    // by tensor
  std::map<std::string, Importances> importances_;           // by kind
  std::map<double, std::map<Step, double>> class_accuracy_;  // by label
  std::vector<double> target_edges_;                         // of the bins, of the first samples
  std::map<Step, std::vector<double>> target_errors_;        // a mean for each bin; NaN: no samples
  Step sample_step_ = -1;
  Samples samples_;  // the newest
};

}  // namespace smd::rules
