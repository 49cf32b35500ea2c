#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/boosting_page.h"
#include "smd/rules/boosting_report.h"
#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"
#include "smd/storage/storage.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kJsonFile = "xgboost_report.json";
constexpr std::string_view kPageFile = "xgboost_report.html";

// "reports/<run>" beside the run.
std::string default_place(std::string_view run) {
  while (run.size() > 1 && run.ends_with('/')) run.remove_suffix(1);
  if (storage::is_object_store(run)) {
    const size_t bucket = run.find("://") + 3;
    const size_t slash = run.rfind('/');
    if (slash == std::string_view::npos || slash < bucket) return fmt::format("{}/reports", run);
    return fmt::format("{}/reports/{}", run.substr(0, slash), run.substr(slash + 1));
  }
  std::error_code failed;
  const auto path = std::filesystem::absolute(run, failed).lexically_normal();
  const auto place = path.has_filename() ? path : path.parent_path();
  return (place.parent_path() / "reports" / place.filename()).string();
}

struct Inputs {
  Selection parameters;
  Selection metrics;
  Selection importances;
  Selection labels;
  Selection predictions;
};

class CreateReport final : public Rule {
 public:
  CreateReport(Inputs inputs, std::string out_dir, double refresh_secs, const RuleContext& context)
      : inputs_(std::move(inputs)),
        out_dir_(std::move(out_dir)),
        refresh_secs_(refresh_secs),
        clock_(context.clock),
        log_(context.log),
        last_write_(clock_->now()) {}

  std::vector<Selection*> selections() override {
    return {&inputs_.metrics, &inputs_.importances, &inputs_.labels, &inputs_.predictions,
            &inputs_.parameters};
  }

  Status observe(const StepView& step, Hits&) override {
    step_ = step.info().step;
    SMD_RETURN_IF_ERROR(gather(step));
    if (!has_data_ || !is_due()) return {};
    // The next time may be better.
    if (const Status written = write(step.run().name); !written.ok()) {
      log_->warning(fmt::format("CreateXgboostReport could not write its report: {}",
                                written.error().message));
    }
    return {};
  }

  Status finish(const RunView& run, Hits&) override {
    return has_data_ ? write(run.name) : Status();
  }

  std::string remark() const override {
    return written_.empty() ? ""
                            : fmt::format("Wrote {}/{} and {}.", written_, kPageFile, kJsonFile);
  }

 private:
  bool is_due() const {
    return std::chrono::duration<double>(clock_->now() - last_write_).count() >= refresh_secs_;
  }

  Status gather(const StepView& step) {
    SMD_RETURN_IF_ERROR(inputs_.parameters.for_each(step, [&](const TensorRow& row) -> Status {
      if (!row.is_first_worker) return {};
      SMD_TRY(const TensorValue* value, step.value(row));
      const std::string& tensor = step.tensor(row);
      SMD_TRY(Json parameter, parameter_of(*value));
      report_.set_parameter(tensor.substr(tensor.rfind('/') + 1), std::move(parameter));
      has_data_ = true;
      return {};
    }));
    inputs_.metrics.for_each(step, [&](const TensorRow& row) {
      if (!row.is_first_worker) return;
      report_.add_metric(step.tensor(row), step_, step.number(row, Statistic::value));
      has_data_ = true;
    });
    inputs_.importances.for_each(step, [&](const TensorRow& row) {
      if (!row.is_first_worker) return;
      add_importance(step.tensor(row), step.number(row, Statistic::value));
      has_data_ = true;
    });
    return gather_samples(step);
  }

  // "feature_importance/gain/f0".
  void add_importance(const std::string& tensor, double value) {
    const size_t feature = tensor.find('/', tensor.find('/') + 1);
    if (feature == std::string::npos) return;
    const size_t kind = tensor.find('/') + 1;
    report_.add_importance(tensor.substr(kind, feature - kind), tensor.substr(feature + 1), step_,
                           value);
  }

  Status gather_samples(const StepView& step) {
    const TensorRow* labels = nullptr;
    const TensorRow* predictions = nullptr;
    inputs_.labels.for_each(step, [&](const TensorRow& row) {
      if (labels == nullptr && row.is_first_worker) labels = &row;
    });
    inputs_.predictions.for_each(step, [&](const TensorRow& row) {
      if (predictions == nullptr && row.is_first_worker) predictions = &row;
    });
    if (labels == nullptr || predictions == nullptr) return {};
    SMD_TRY(const TensorValue* label_value, step.value(*labels));
    SMD_TRY(const TensorValue* prediction_value, step.value(*predictions));
    BoostingReport::Samples samples;
    SMD_TRY(samples.labels, to_doubles(label_value->view()));
    SMD_TRY(samples.predictions, to_doubles(prediction_value->view()));
    if (samples.labels.empty()) return {};
    samples.width = samples.predictions.size() / samples.labels.size();
    if (samples.width == 0 || samples.predictions.size() != samples.labels.size() * samples.width) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' has {} predictions for the {} labels of '{}' at step {}.",
                               step.tensor(*predictions), samples.predictions.size(),
                               samples.labels.size(), step.tensor(*labels), step_)};
    }
    report_.add_samples(step_, std::move(samples));
    has_data_ = true;
    return {};
  }

  static Result<Json> parameter_of(const TensorValue& value) {
    if (value.dtype == DType::string) {
      return value.strings.size() == 1 ? Json(value.strings.front()) : Json(value.strings);
    }
    SMD_TRY(const auto numbers, to_doubles(value.view()));
    Json list = Json::array();
    for (double number : numbers) list.push_back(json_of(number));
    return list.size() == 1 ? list.front() : list;
  }

  Status write(std::string_view run) {
    last_write_ = clock_->now();
    const std::string place = out_dir_.empty() ? default_place(run) : out_dir_;
    SMD_TRY(const auto storage, storage::open_storage(place));
    Json report = {{"run", run}, {"step", step_}, {"written", clock_->unix_secs()}};
    report.update(report_.to_json());
    SMD_RETURN_IF_ERROR(
        storage->put(kJsonFile, as_bytes(dump_json(report) + "\n"), storage::Put::always, {}));
    SMD_RETURN_IF_ERROR(
        storage->put(kPageFile, as_bytes(boosting_page(report)), storage::Put::always, {}));
    written_ = place;
    return {};
  }

  Inputs inputs_;
  const std::string out_dir_;
  const double refresh_secs_;
  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<Log> log_;
  BoostingReport report_;
  Step step_ = -1;
  bool has_data_ = false;
  std::chrono::steady_clock::time_point last_write_;  // or when the rule was made
  std::string written_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "out_dir",
     .type = ParameterType::text,
     .default_text = "",
     .help = "The directory or s3:// place for the report; not given, reports/<run> beside the "
             "run.",
     .aliases = "output_dir",
     .is_extension = true},
    {.name = "refresh_s",
     .type = ParameterType::real,
     .default_text = "60",
     .help = "While training runs, the report is written anew at most every so many seconds.",
     .range = "[0,]",
     .is_extension = true},
};

constexpr CollectionRequest::Setting kEveryFive[] = {{"save_interval", "5"}};
constexpr CollectionRequest::Setting kOnce[] = {{"save_steps", "0"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kMetrics, kEveryFive},
                                              {collection_keys::kFeatureImportance, kEveryFive},
                                              {collection_keys::kHyperparameters, kOnce},
                                              {collection_keys::kPredictions, kEveryFive},
                                              {collection_keys::kLabels, kEveryFive}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  SMD_TRY(auto hyperparameters,
          Selection::create({.what = "hyperparameters",
                             .collections = {std::string(collection_keys::kHyperparameters)},
                             .patterns = {"^hyperparameters/"},
                             .values = true,
                             .is_required = false},
                            parameters));
  SMD_TRY(auto metrics, Selection::create({.what = "metrics of boosted trees",
                                           .collections = {std::string(collection_keys::kMetrics)},
                                           .patterns = {"^(train|validation|valid|eval|test)-"},
                                           .statistics = {Statistic::value},
                                           .is_required = false},
                                          parameters));
  SMD_TRY(auto importances, Selection::create({.what = "importances of features",
                                               .patterns = {"^feature_importance/[^/]+/"},
                                               .statistics = {Statistic::value},
                                               .is_required = false},
                                              parameters));
  SMD_TRY(auto labels, Selection::create({.what = "labels",
                                          .collections = {std::string(collection_keys::kLabels)},
                                          .patterns = {"^labels$"},
                                          .values = true,
                                          .is_required = false},
                                         parameters));
  SMD_TRY(auto predictions,
          Selection::create({.what = "predictions",
                             .collections = {std::string(collection_keys::kPredictions)},
                             .patterns = {"^predictions$"},
                             .values = true,
                             .is_required = false},
                            parameters));
  return make_rule<CreateReport>(
      Inputs{std::move(hyperparameters), std::move(metrics), std::move(importances),
             std::move(labels), std::move(predictions)},
      parameters.has("out_dir") ? parameters.text("out_dir") : "", parameters.real("refresh_s"),
      context);
}

}  // namespace

extern const RuleKind create_xgboost_report;
const RuleKind create_xgboost_report = {
    .name = "CreateXgboostReport",
    .group = RuleGroup::trees,
    .severity = Severity::info,
    .summary = "Writes a report about a training of boosted trees; it never fires.",
    .sees =
        "Metrics, importances of features, labels, predictions and hyperparameters. Writes "
        "xgboost_report.html and xgboost_report.json: the distribution of the labels, the loss "
        "by step with a remark on the fit, the importance of the features, and what suits the "
        "task: confusion matrix, accuracy of each class and ROC curve, or residuals and errors "
        "by target.",
    .why =
        "One page shows whether a model is fit for use, and its numbers can be compared between "
        "runs.",
    .fix = "Nothing is wrong. A section whose tensors were not saved says which ones it needs.",
    .parameters = kParameters,
    .collections = kCollections,
    .writes_files = true,
    .create = create,
};

}  // namespace smd::rules::builtin
