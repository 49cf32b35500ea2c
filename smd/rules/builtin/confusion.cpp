#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "smd/rules/classes.h"
#include "smd/rules/confusion_counts.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr int64_t kMostShown = 64;
constexpr int64_t kMostClasses = 1 << 20;

// A tensor by its name or, where there is none of that name, the first of a collection.
struct Source {
  std::string name;
  Selection selection;

  // By worker.
  std::map<uint32_t, const TensorRow*> rows(const StepView& step) {
    std::map<uint32_t, const TensorRow*> out;
    selection.for_each(step, [&](const TensorRow& row) {
      auto& place = out[row.worker];
      if (place == nullptr || step.tensor(row) == name) place = &row;
    });
    return out;
  }
};

struct Options {
  std::optional<int64_t> category_no;
  double min_diag = 0;
  double max_off_diag = 0;
  bool by_prediction = false;
};

class Confusion final : public Rule {
 public:
  Confusion(Source labels, Source predictions, const Options& options)
      : labels_(std::move(labels)), predictions_(std::move(predictions)), options_(options) {}

  std::vector<Selection*> selections() override {
    return {&labels_.selection, &predictions_.selection};
  }
  bool is_done() const override { return not_classes_.has_value(); }

  Status observe(const StepView& step, Hits& hits) override {
    const auto labels = labels_.rows(step);
    const auto predictions = predictions_.rows(step);
    for (const auto& [worker, label_row] : labels) {
      const auto found = predictions.find(worker);
      if (found == predictions.end()) continue;
      const auto pairs = read_class_pairs(step, *label_row, *found->second, Scores::if_needed);
      if (!pairs.ok() && pairs.error().code == ErrorCode::unsupported) {
        not_classes_ = pairs.error().message;
        return {};
      }
      if (!pairs.ok()) return pairs.error();
      if (pairs->labels.empty()) continue;
      const int64_t classes = options_.category_no.value_or(ConfusionCounts::classes_in(*pairs));
      if (classes > kMostClasses) {
        not_classes_ =
            fmt::format("A label or prediction is {}, which cannot be a class.", classes - 1);
        return {};
      }
      has_compared_ = true;
      ConfusionCounts counts(std::max<int64_t>(classes, 1));
      const Status added = counts.add(*pairs);
      if (!added.ok()) {
        return Error{
            added.error().code,
            fmt::format("Step {}, '{}' and '{}': {}", step.info().step, step.tensor(*label_row),
                        step.tensor(*found->second), added.error().message)};
      }
      judge(step, *found->second, counts, hits);
    }
    return {};
  }

  std::optional<std::string> missing() const override {
    if (not_classes_) return *not_classes_;
    if (has_compared_) return std::nullopt;
    return "It needs labels and predictions of the same step, and the run has none.";
  }

 private:
  void judge(const StepView& step, const TensorRow& row, const ConfusionCounts& counts,
             Hits& hits) const {
    bool is_first = true;
    const auto report = [&](std::string_view metric, double share, Op op, double threshold,
                            int64_t label, int64_t prediction) {
      if (hits.empty()) hits.say(sentence(share, op, threshold, label, prediction));
      Violation* hit = hits.add(step, row, metric, share, op, threshold);
      if (hit == nullptr) return;
      hit->with("row", Json(label)).with("column", Json(prediction));
      if (is_first && counts.class_count() <= kMostShown) hit->with("matrix", matrix(counts));
      is_first = false;
    };
    const auto total = [&](int64_t number) {
      return options_.by_prediction ? counts.prediction_total(number) : counts.label_total(number);
    };
    const auto share = [&](int64_t count, int64_t of) {
      return static_cast<double>(count) / static_cast<double>(of);
    };
    for (int64_t i = 0; i < counts.class_count(); ++i) {
      if (total(i) == 0) continue;
      const double right = share(counts.at(i, i), total(i));
      if (right < options_.min_diag) {
        report("diagonal_share", right, Op::below, options_.min_diag, i, i);
      }
    }
    counts.for_each([&](int64_t label, int64_t prediction, int64_t count) {
      if (label == prediction) return;
      const double wrong = share(count, total(options_.by_prediction ? prediction : label));
      if (wrong > options_.max_off_diag) {
        report("off_diagonal_share", wrong, Op::above, options_.max_off_diag, label, prediction);
      }
    });
  }

  std::string sentence(double share, Op op, double threshold, int64_t label,
                       int64_t prediction) const {
    const std::string of = options_.by_prediction ? fmt::format("predictions of {}", prediction)
                                                  : fmt::format("class {}", label);
    if (op == Op::below) {
      return fmt::format("{:.4g} % of {} are right; at least {:g} % are expected.", 100 * share, of,
                         100 * threshold);
    }
    return fmt::format("{:.4g} % of {} are {}; at most {:g} % are accepted.", 100 * share, of,
                       options_.by_prediction ? fmt::format("class {}", label)
                                              : fmt::format("predicted as {}", prediction),
                       100 * threshold);
  }

  static Json matrix(const ConfusionCounts& counts) {
    Json out = Json::array();
    for (int64_t i = 0; i < counts.class_count(); ++i) {
      Json line = Json::array();
      for (int64_t j = 0; j < counts.class_count(); ++j) line.push_back(counts.at(i, j));
      out.push_back(std::move(line));
    }
    return out;
  }

  Source labels_;
  Source predictions_;
  Options options_;
  bool has_compared_ = false;
  std::optional<std::string> not_classes_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "category_no",
     .type = ParameterType::integer,
     .default_text = "",
     .help = "How many classes there are; not given, one more than the largest class of the step.",
     .range = "[2,1048576]"},
    {.name = "labels",
     .type = ParameterType::text,
     .default_text = "labels",
     .help = "The name of the tensor with the labels."},
    {.name = "predictions",
     .type = ParameterType::text,
     .default_text = "predictions",
     .help = "The name of the tensor with the predictions."},
    {.name = "labels_collection",
     .type = ParameterType::text,
     .default_text = "labels",
     .help = "Where there is no tensor of that name, the first one of this collection."},
    {.name = "predictions_collection",
     .type = ParameterType::text,
     .default_text = "predictions",
     .help = "The same for the predictions."},
    {.name = "min_diag",
     .type = ParameterType::real,
     .default_text = "0.9",
     .help = "Fires when less than this part of a class is predicted rightly.",
     .range = "[0,1]"},
    {.name = "max_off_diag",
     .type = ParameterType::real,
     .default_text = "0.1",
     .help = "Fires when more than this part of a class is predicted as one other class.",
     .range = "[0,1]"},
    {.name = "normalize",
     .type = ParameterType::text,
     .default_text = "true",
     .help = "'true': parts of the samples with a label; 'pred': parts of those with a prediction.",
     .choices = "true pred",
     .is_extension = true},
};

// Every character stands for itself.
std::string literal(const std::string& name) {
  std::string out = "^";
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out.push_back('\\');
    out.push_back(c);
  }
  return out + "$";
}

Result<Source> make_source(const Parameters& parameters, const std::string& what) {
  const std::string& name = parameters.text(what);
  SMD_TRY(auto selection, Selection::create({.what = what,
                                             .collections = {parameters.text(what + "_collection")},
                                             .patterns = {literal(name)},
                                             .values = true},
                                            parameters));
  return Source{name, std::move(selection)};
}

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto labels, make_source(parameters, "labels"));
  SMD_TRY(auto predictions, make_source(parameters, "predictions"));
  Options options{.min_diag = parameters.real("min_diag"),
                  .max_off_diag = parameters.real("max_off_diag"),
                  .by_prediction = parameters.text("normalize") == "pred"};
  if (parameters.has("category_no")) options.category_no = parameters.integer("category_no");
  return make_rule<Confusion>(std::move(labels), std::move(predictions), options);
}

}  // namespace

extern const RuleKind confusion;
const RuleKind confusion = {
    .name = "Confusion",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The model confuses classes with each other.",
    .sees =
        "The confusion matrix of labels and predictions of each step; fires when less than "
        "min_diag of a class is right, or more than max_off_diag of it is taken for one other "
        "class.",
    .why =
        "Overall accuracy hides which classes fail. A single large number beside the diagonal "
        "usually has a reason of its own: similar classes, swapped labels or missing samples.",
    .fix =
        "Look at the samples of the named row and column: are their labels right, and can "
        "people tell them apart? Add samples or features that separate the two classes, or "
        "merge them. Early in training this is normal: judge later steps, or lower min_diag.",
    .parameters = kParameters,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
