#include "smd/rules/boosting_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "smd/rules/class_scores.h"
#include "smd/rules/confusion_counts.h"
#include "smd/rules/fit_remark.h"
#include "smd/rules/hit.h"
#include "smd/rules/metric_pairs.h"
#include "smd/rules/roc_curve.h"

namespace smd::rules {
namespace {

constexpr size_t kMostInferredClasses = 20;
constexpr size_t kMostClasses = 64;
constexpr size_t kLabelBins = 20;
constexpr size_t kResidualBins = 30;
constexpr size_t kTargetBins = 10;
constexpr size_t kMostRocPoints = 1000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<std::string_view, 5> kTasks = {
    "unknown", "binary classification", "multi-class classification", "regression", "ranking"};

constexpr std::string_view kNoSamples =
    "It needs labels and predictions of the same step (collections 'labels' and 'predictions').";

Json missing(std::string_view why) { return {{"missing", why}}; }

Json json_of(const std::vector<double>& numbers) {
  Json out = Json::array();
  for (double number : numbers) out.push_back(std::isnan(number) ? Json() : rules::json_of(number));
  return out;
}

std::set<double> distinct(const std::vector<double>& numbers) {
  std::set<double> out;
  for (double number : numbers) {
    if (!std::isnan(number)) out.insert(number);
    if (out.size() > kMostClasses) break;
  }
  return out;
}

// Equal parts of the range of the finite numbers; one part where there is no range.
std::vector<double> equal_edges(const std::vector<double>& numbers, size_t bins) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (double number : numbers) {
    if (!std::isfinite(number)) continue;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  if (!(low <= high)) return {};
  if (low == high) return {low, high};
  std::vector<double> out;
  for (size_t i = 0; i <= bins; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(bins);
    out.push_back(low * (1 - part) + high * part);
  }
  return out;
}

// Numbers outside go to the ends.
size_t bin_of(double number, const std::vector<double>& edges) {
  const auto above = std::ranges::upper_bound(edges, number);
  const auto at = above == edges.begin() ? 0 : static_cast<size_t>(above - edges.begin()) - 1;
  return std::min(at, edges.size() - 2);
}

Json histogram(const std::vector<double>& numbers, size_t bins) {
  const std::vector<double> edges = equal_edges(numbers, bins);
  std::vector<int64_t> counts(edges.empty() ? 0 : edges.size() - 1);
  for (double number : numbers) {
    if (std::isfinite(number) && !counts.empty()) ++counts[bin_of(number, edges)];
  }
  return {{"edges", json_of(edges)}, {"counts", counts}};
}

BoostingReport::Samples without_nan_labels(const BoostingReport::Samples& samples) {
  BoostingReport::Samples out{.width = samples.width};
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    if (std::isnan(samples.labels[i])) continue;
    out.labels.push_back(samples.labels[i]);
    const auto first = samples.predictions.begin() + static_cast<ptrdiff_t>(i * samples.width);
    out.predictions.insert(out.predictions.end(), first,
                           first + static_cast<ptrdiff_t>(samples.width));
  }
  return out;
}

}  // namespace

std::string_view name_of(BoostingTask task) { return kTasks[static_cast<size_t>(task)]; }

void BoostingReport::set_parameter(const std::string& name, Json value) {
  parameters_[name] = std::move(value);
}

void BoostingReport::add_metric(const std::string& tensor, Step step, double value) {
  Series& series = metrics_[tensor];
  series.steps.push_back(step);
  series.values.push_back(value);
}

void BoostingReport::add_importance(const std::string& kind, const std::string& feature, Step step,
                                    double value) {
  Importances& place = importances_[kind];
  if (place.step != step) place = {.step = step, .features = {}};
  place.features[feature] = value;
}

void BoostingReport::add_samples(Step step, Samples samples) {
  if (std::ranges::any_of(samples.labels, [](double label) { return std::isnan(label); })) {
    samples = without_nan_labels(samples);
  }
  if (samples.labels.empty()) return;
  samples_ = std::move(samples);
  sample_step_ = step;
  if (is_classification()) {
    add_class_accuracy(step, samples_);
  } else if (task() == BoostingTask::regression && samples_.width == 1) {
    add_target_errors(step, samples_);
  }
}

std::string BoostingReport::objective() const {
  const auto at = parameters_.find("objective");
  return at != parameters_.end() && at->second.is_string() ? at->second.get<std::string>() : "";
}

BoostingTask BoostingReport::task() const {
  const std::string given = objective();
  if (given.starts_with("binary:")) return BoostingTask::binary;
  if (given.starts_with("multi:")) return BoostingTask::multiclass;
  if (given.starts_with("rank:")) return BoostingTask::ranking;
  for (std::string_view family : {"reg:", "count:", "survival:"}) {
    if (given.starts_with(family)) return BoostingTask::regression;
  }
  if (samples_.labels.empty()) return BoostingTask::unknown;
  const bool is_whole = std::ranges::all_of(
      samples_.labels, [](double label) { return std::nearbyint(label) == label; });
  const size_t classes = distinct(samples_.labels).size();
  if (!is_whole || classes > kMostInferredClasses) return BoostingTask::regression;
  return classes <= 2 && samples_.width <= 2 ? BoostingTask::binary : BoostingTask::multiclass;
}

bool BoostingReport::is_classification() const {
  return task() == BoostingTask::binary || task() == BoostingTask::multiclass;
}

std::vector<double> BoostingReport::predicted_labels(const Samples& samples) const {
  const bool is_margin = objective() == "binary:logitraw";
  std::vector<double> out;
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    const std::span<const double> scores(samples.predictions.data() + i * samples.width,
                                         samples.width);
    if (std::ranges::any_of(scores, [](double score) { return std::isnan(score); })) {
      out.push_back(kNan);
    } else if (samples.width > 1) {
      out.push_back(static_cast<double>(std::ranges::max_element(scores) - scores.begin()));
    } else if (is_margin) {
      out.push_back(scores[0] > 0 ? 1 : 0);
    } else {
      out.push_back(std::floor(scores[0] + 0.5));
    }
  }
  return out;
}

void BoostingReport::add_class_accuracy(Step step, const Samples& samples) {
  const std::vector<double> predicted = predicted_labels(samples);
  std::map<double, std::pair<double, double>> counts;  // right, all
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    auto& [right, all] = counts[samples.labels[i]];
    right += predicted[i] == samples.labels[i];
    ++all;
  }
  if (counts.size() > kMostClasses) return;
  for (const auto& [label, count] : counts) {
    class_accuracy_[label][step] = count.first / count.second;
  }
}

void BoostingReport::add_target_errors(Step step, const Samples& samples) {
  if (target_edges_.empty()) target_edges_ = equal_edges(samples.labels, kTargetBins);
  if (target_edges_.empty()) return;
  std::vector<double> sums(target_edges_.size() - 1);
  std::vector<double> counts(sums.size());
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    const double error = std::fabs(samples.labels[i] - samples.predictions[i]);
    if (!std::isfinite(error)) continue;
    const size_t bin = bin_of(samples.labels[i], target_edges_);
    sums[bin] += error;
    ++counts[bin];
  }
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = counts[i] > 0 ? sums[i] / counts[i] : kNan;
  target_errors_[step] = std::move(sums);
}

Json BoostingReport::label_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  Json out = {{"step", sample_step_}, {"count", samples_.labels.size()}};
  const auto classes = distinct(samples_.labels);
  if (!is_classification() || classes.size() > kMostClasses) {
    out["histogram"] = histogram(samples_.labels, kLabelBins);
    return out;
  }
  std::map<double, int64_t> counts;
  for (double label : samples_.labels) ++counts[label];
  for (const auto& [label, count] : counts) {
    out["classes"].push_back({{"label", rules::json_of(label)}, {"count", count}});
  }
  return out;
}

Json BoostingReport::loss_section() const {
  if (metrics_.empty())
    return missing("It needs the metrics of the rounds (collection 'metrics').");
  std::map<std::string, Json> by_metric;
  for (const auto& [tensor, series] : metrics_) {
    const auto name = parse_metric_name(tensor);
    Json& metric = by_metric[name ? name->metric : tensor];
    metric["metric"] = name ? name->metric : tensor;
    metric["rises"] = name && name->rises;
    metric["series"].push_back({{"tensor", tensor},
                                {"data", !name               ? "other"
                                         : name->is_training ? "train"
                                                             : "validation"},
                                {"steps", series.steps},
                                {"values", json_of(series.values)}});
  }
  for (auto& [metric, section] : by_metric) {
    const Series* train = nullptr;
    const Series* validation = nullptr;
    bool rises = false;
    for (const auto& [tensor, series] : metrics_) {
      const auto name = parse_metric_name(tensor);
      if (!name || name->metric != metric) continue;
      const Series*& place = name->is_training ? train : validation;
      if (place == nullptr) place = &series;
      rises = name->rises;
    }
    section["remark"] =
        train == nullptr || validation == nullptr
            ? "Training and validation data are needed to tell overfitting from underfitting."
            : fit_remark({.train = train->values,
                          .validation = validation->values,
                          .validation_steps = validation->steps,
                          .rises = rises});
  }
  Json out = Json::object();
  for (auto& [metric, section] : by_metric) out["metrics"].push_back(std::move(section));
  return out;
}

Json BoostingReport::importance_section() const {
  if (importances_.empty()) {
    return missing("It needs the importances of the features (collection 'feature_importance').");
  }
  Json out = Json::object();
  for (std::string_view kind : {"weight", "gain", "cover"}) {
    if (!importances_.contains(std::string(kind))) {
      out[std::string(kind)] = missing(fmt::format("It needs feature_importance/{}.", kind));
    }
  }
  for (const auto& [kind, importances] : importances_) {
    std::vector<std::pair<std::string, double>> sorted(importances.features.begin(),
                                                       importances.features.end());
    std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& feature) {
      return std::isnan(feature.second) ? -INFINITY : feature.second;
    });
    Json features = Json::array();
    for (const auto& [feature, value] : sorted) {
      features.push_back({{"feature", feature}, {"importance", rules::json_of(value)}});
    }
    out[kind] = {{"step", importances.step}, {"features", std::move(features)}};
  }
  return out;
}

Json BoostingReport::confusion_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  const std::vector<double> predicted = predicted_labels(samples_);
  std::vector<double> both = samples_.labels;
  both.insert(both.end(), predicted.begin(), predicted.end());
  const auto classes = distinct(both);
  if (classes.size() > kMostClasses) {
    return missing(fmt::format("There are more than {} classes.", kMostClasses));
  }
  const std::vector<double> labels(classes.begin(), classes.end());
  ClassPairs pairs;
  const auto number_of = [&](double label) -> int64_t {
    if (std::isnan(label)) return kNoClass;
    return std::ranges::lower_bound(labels, label) - labels.begin();
  };
  for (size_t i = 0; i < predicted.size(); ++i) {
    pairs.labels.push_back(number_of(samples_.labels[i]));
    pairs.predictions.push_back(number_of(predicted[i]));
  }
  ConfusionCounts counts(static_cast<int64_t>(labels.size()));
  if (const Status added = counts.add(pairs); !added.ok()) return missing(added.error().message);
  Json matrix = Json::array();
  for (int64_t i = 0; i < counts.class_count(); ++i) {
    Json line = Json::array();
    for (int64_t j = 0; j < counts.class_count(); ++j) line.push_back(counts.at(i, j));
    matrix.push_back(std::move(line));
  }
  return {{"step", sample_step_},
          {"labels", json_of(labels)},
          {"matrix", std::move(matrix)},
          {"scores", class_scores(counts, labels)}};
}

Json BoostingReport::class_accuracy_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  if (class_accuracy_.empty()) {
    return missing(fmt::format("There are more than {} classes.", kMostClasses));
  }
  Json out = Json::object();
  for (const auto& [label, by_step] : class_accuracy_) {
    Json steps = Json::array();
    Json values = Json::array();
    for (const auto& [step, accuracy] : by_step) {
      steps.push_back(step);
      values.push_back(accuracy);
    }
    out["classes"].push_back({{"label", rules::json_of(label)},
                              {"steps", std::move(steps)},
                              {"accuracy", std::move(values)}});
  }
  return out;
}

Json BoostingReport::roc_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  if (samples_.width > 2) return missing("The predictions have more than two columns.");
  const double positive = *std::ranges::max_element(samples_.labels);
  std::vector<bool> is_positive;
  std::vector<double> scores;
  for (size_t i = 0; i < samples_.labels.size(); ++i) {
    is_positive.push_back(samples_.labels[i] == positive);
    scores.push_back(samples_.predictions[(i + 1) * samples_.width - 1]);
  }
  const auto curve = roc_curve(is_positive, scores);
  if (!curve) return missing("The samples belong to one class only.");
  Json out = {{"step", sample_step_}, {"auc", curve->auc}, {"points", Json::array()}};
  for (const RocCurve::Point& point : thinned(*curve, kMostRocPoints)) {
    out["points"].push_back({{"false_positive_rate", point.false_positive_rate},
                             {"true_positive_rate", point.true_positive_rate},
                             {"threshold", rules::json_of(point.threshold)}});
  }
  return out;
}

Json BoostingReport::residual_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  if (samples_.width != 1) return missing("There is more than one prediction for each label.");
  std::vector<double> residuals;
  for (size_t i = 0; i < samples_.labels.size(); ++i) {
    const double residual = samples_.labels[i] - samples_.predictions[i];
    if (std::isfinite(residual)) residuals.push_back(residual);
  }
  if (residuals.empty()) return missing("No residual is a finite number.");
  const auto count = static_cast<double>(residuals.size());
  const double mean = std::accumulate(residuals.begin(), residuals.end(), 0.0) / count;
  double squares = 0;
  double absolute = 0;
  for (double residual : residuals) {
    squares += (residual - mean) * (residual - mean);
    absolute += std::fabs(residual);
  }
  return {{"step", sample_step_},
          {"count", residuals.size()},
          {"nonfinite_count", samples_.labels.size() - residuals.size()},
          {"mean", mean},
          {"std", std::sqrt(squares / count)},
          {"min", *std::ranges::min_element(residuals)},
          {"max", *std::ranges::max_element(residuals)},
          {"mean_absolute_error", absolute / count},
          {"root_mean_squared_error", std::sqrt(squares / count + mean * mean)},
          {"histogram", histogram(residuals, kResidualBins)}};
}

Json BoostingReport::target_error_section() const {
  if (samples_.labels.empty()) return missing(kNoSamples);
  if (target_errors_.empty()) return missing("There is more than one prediction for each label.");
  Json out = {{"edges", json_of(target_edges_)}};
  for (const auto& [step, errors] : target_errors_) {
    out["steps"].push_back(step);
    out["mean_absolute_error"].push_back(json_of(errors));
  }
  return out;
}

Json BoostingReport::to_json() const {
  Json parameters = Json::object();
  for (const auto& [name, value] : parameters_) parameters[name] = value;
  Json sections = {{"label_distribution", label_section()},
                   {"loss", loss_section()},
                   {"feature_importance", importance_section()}};
  if (is_classification()) {
    sections["confusion_matrix"] = confusion_section();
    sections["class_accuracy"] = class_accuracy_section();
  }
  if (task() == BoostingTask::binary) sections["roc"] = roc_section();
  if (task() == BoostingTask::regression) {
    sections["residuals"] = residual_section();
    sections["target_error"] = target_error_section();
  }
  if (task() == BoostingTask::unknown) {
    sections["quality"] = missing(
        "It needs labels and predictions, or the objective (collection 'hyperparameters'), to know "
        "the task.");
  }
  return {{"task", name_of(task())},
          {"objective", objective().empty() ? Json() : Json(objective())},
          {"hyperparameters", std::move(parameters)},
          {"sections", std::move(sections)}};
}

}  // namespace smd::rules
