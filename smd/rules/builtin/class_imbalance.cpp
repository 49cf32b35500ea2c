#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "smd/rules/classes.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double threshold_imbalance = 0;
  double threshold_misprediction = 0;
  int64_t samples = 0;
  bool argmax = false;
  std::optional<int64_t> num_classes;
  int64_t min_class_samples = 1;
};

// Samples of a class so far, and those that were taken for another.
struct Tally {
  int64_t count = 0;
  int64_t errors = 0;
};

class Tallies {
 public:
  void add(const ClassPairs& pairs) {
    for (size_t i = 0; i < pairs.labels.size(); ++i) {
      const int64_t label = pairs.labels[i];
      Tally& tally = label >= 0 && label < kMostDense ? dense(label) : other_[label];
      ++tally.count;
      tally.errors += pairs.predictions[i] != label;
    }
    total_ += static_cast<int64_t>(pairs.labels.size());
  }
  int64_t total() const { return total_; }

  // Classes seen, in order.
  std::map<int64_t, Tally> all() const {
    std::map<int64_t, Tally> out = other_;
    for (size_t i = 0; i < dense_.size(); ++i) {
      if (dense_[i].count > 0) out[static_cast<int64_t>(i)] = dense_[i];
    }
    return out;
  }

 private:
  static constexpr int64_t kMostDense = 65536;

  Tally& dense(int64_t label) {
    const auto at = static_cast<size_t>(label);
    if (at >= dense_.size()) dense_.resize(at + 1);
    return dense_[at];
  }

  std::vector<Tally> dense_;
  std::map<int64_t, Tally> other_;
  int64_t total_ = 0;
};

class ClassImbalance final : public Rule {
 public:
  ClassImbalance(Selection labels, Selection predictions, const Options& options)
      : labels_(std::move(labels)), predictions_(std::move(predictions)), options_(options) {}

  std::vector<Selection*> selections() override { return {&labels_, &predictions_}; }
  bool is_done() const override { return not_classes_.has_value(); }

  Status observe(const StepView& step, Hits& hits) override {
    // Of several tensors the first by name.
    std::map<uint32_t, std::pair<const TensorRow*, const TensorRow*>> by_worker;
    labels_.for_each(step, [&](const TensorRow& row) {
      auto& place = by_worker[row.worker].first;
      if (place == nullptr) place = &row;
    });
    predictions_.for_each(step, [&](const TensorRow& row) {
      auto& place = by_worker[row.worker].second;
      if (place == nullptr) place = &row;
    });
    for (const auto& [worker, rows] : by_worker) {
      if (rows.first == nullptr || rows.second == nullptr) continue;
      const auto pairs = read_class_pairs(step, *rows.first, *rows.second,
                                          options_.argmax ? Scores::yes : Scores::no);
      if (!pairs.ok() && pairs.error().code == ErrorCode::unsupported) {
        not_classes_ = pairs.error().message;
        return {};
      }
      if (!pairs.ok()) return pairs.error();
      Tallies& tallies = by_worker_[worker];
      tallies.add(*pairs);
      if (options_.num_classes) SMD_RETURN_IF_ERROR(check_labels(step, *rows.first, *pairs));
      most_samples_ = std::max(most_samples_, tallies.total());
      if (tallies.total() >= options_.samples) judge(step, *rows.first, tallies.all(), hits);
    }
    return {};
  }

  std::optional<std::string> missing() const override {
    if (not_classes_) return *not_classes_;
    if (most_samples_ >= options_.samples) return std::nullopt;
    return fmt::format(
        "It needs {} samples with labels and predictions of the same step, and the "
        "run has {}.",
        options_.samples, most_samples_);
  }

 private:
  Status check_labels(const StepView& step, const TensorRow& row, const ClassPairs& pairs) const {
    for (int64_t label : pairs.labels) {
      if (label >= 0 && label < *options_.num_classes) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("A label of '{}' is {} at step {}, and num_classes is {}.",
                               step.tensor(row), label, step.info().step, *options_.num_classes)};
    }
    return {};
  }

  void judge(const StepView& step, const TensorRow& row, const std::map<int64_t, Tally>& tallies,
             Hits& hits) const {
    const auto by_count = [](const auto& a, const auto& b) {
      return a.second.count < b.second.count;
    };
    const auto most = std::ranges::max_element(tallies, by_count);
    const auto least = std::ranges::min_element(tallies, by_count);
    if (most == tallies.end()) return;
    const bool has_absent =
        options_.num_classes && static_cast<int64_t>(tallies.size()) < *options_.num_classes;
    const double ratio = has_absent ? std::numeric_limits<double>::infinity()
                                    : static_cast<double>(most->second.count) /
                                          static_cast<double>(least->second.count);
    Json counts = Json::object();
    Json rates = Json::object();
    for (const auto& [number, tally] : tallies) {
      counts[std::to_string(number)] = tally.count;
      rates[std::to_string(number)] = error_rate(tally);
    }
    if (ratio > options_.threshold_imbalance) {
      hits.say(has_absent
                   ? fmt::format("{} of {} classes have no samples so far, and class {} has {}.",
                                 *options_.num_classes - static_cast<int64_t>(tallies.size()),
                                 *options_.num_classes, most->first, most->second.count)
                   : fmt::format("There are {} samples of class {} and {} of class {}: {:.4g} to "
                                 "1, and {:g} to 1 is accepted.",
                                 most->second.count, most->first, least->second.count, least->first,
                                 ratio, options_.threshold_imbalance));
      Violation* hit =
          hits.add(step, row, "imbalance", ratio, Op::above, options_.threshold_imbalance);
      if (hit != nullptr) hit->with("counts", counts).with("error_rates", rates);
    }
    for (const auto& [number, tally] : tallies) {
      if (tally.count < options_.min_class_samples) continue;
      if (!(error_rate(tally) > options_.threshold_misprediction)) continue;
      if (hits.empty()) {
        hits.say(fmt::format(
            "{:.4g} % of the {} samples of class {} are mispredicted; {:g} % are "
            "accepted.",
            100 * error_rate(tally), tally.count, number, 100 * options_.threshold_misprediction));
      }
      Violation* hit = hits.add(step, row, "misprediction", error_rate(tally), Op::above,
                                options_.threshold_misprediction);
      if (hit == nullptr) continue;
      hit->with("class", Json(number)).with("counts", counts).with("error_rates", rates);
    }
  }

  static double error_rate(const Tally& tally) {
    return static_cast<double>(tally.errors) / static_cast<double>(tally.count);
  }

  Selection labels_;
  Selection predictions_;
  Options options_;
  std::map<uint32_t, Tallies> by_worker_;
  int64_t most_samples_ = 0;
  std::optional<std::string> not_classes_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "threshold_imbalance",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "Fires when the largest class has more than so many times the samples of the "
             "smallest.",
     .range = "[1,]"},
    {.name = "threshold_misprediction",
     .type = ParameterType::real,
     .default_text = "0.7",
     .help = "Fires when more than this part of a class is mispredicted.",
     .range = "[0,1]"},
    {.name = "samples",
     .type = ParameterType::integer,
     .default_text = "500",
     .help = "Judge when so many labels were seen.",
     .range = "[1,]"},
    {.name = "argmax",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Predictions hold one score for each class along their last axis."},
    {.name = "labels_regex",
     .type = ParameterType::list,
     .default_text = ".*labels",
     .help = "Tensors in whose names one of these patterns is found hold labels."},
    {.name = "predictions_regex",
     .type = ParameterType::list,
     .default_text = ".*predictions",
     .help = "Tensors in whose names one of these patterns is found hold predictions."},
    {.name = "num_classes",
     .type = ParameterType::integer,
     .default_text = "",
     .help = "How many classes there are, so that those without any sample are noticed.",
     .range = "[1,]",
     .is_extension = true},
    {.name = "min_class_samples",
     .type = ParameterType::integer,
     .default_text = "1",
     .help = "Mispredictions of smaller classes are not judged.",
     .range = "[1,]",
     .is_extension = true},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.threshold_imbalance = parameters.real("threshold_imbalance"),
                  .threshold_misprediction = parameters.real("threshold_misprediction"),
                  .samples = parameters.integer("samples"),
                  .argmax = parameters.boolean("argmax"),
                  .min_class_samples = parameters.integer("min_class_samples")};
  if (parameters.has("num_classes")) options.num_classes = parameters.integer("num_classes");
  SMD_TRY(auto labels,
          Selection::create(
              {.what = "labels", .patterns = parameters.list("labels_regex"), .values = true},
              parameters));
  SMD_TRY(auto predictions, Selection::create({.what = "predictions",
                                               .patterns = parameters.list("predictions_regex"),
                                               .values = true},
                                              parameters));
  return make_rule<ClassImbalance>(std::move(labels), std::move(predictions), options);
}

}  // namespace

extern const RuleKind class_imbalance;
const RuleKind class_imbalance = {
    .name = "ClassImbalance",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "Some classes have far fewer samples than others, or are mostly mispredicted.",
    .sees =
        "Labels and predictions of all steps so far; once there are enough samples, fires when "
        "the largest class has more than threshold_imbalance times the samples of the "
        "smallest, or when more than threshold_misprediction of a class is wrong.",
    .why =
        "A model that sees a class rarely learns to ignore it, and the overall accuracy hides "
        "that.",
    .fix =
        "Draw the rare classes more often, weight their loss, or collect more of them, and "
        "watch the accuracy of each class instead of the overall one. If a frequent class is "
        "mispredicted, check its labels.",
    .parameters = kParameters,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
