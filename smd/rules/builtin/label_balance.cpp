#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/classes.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// More than that are words, not classes.
constexpr size_t kMostClasses = 10'000;

class LabelBalance final : public Rule {
 public:
  LabelBalance(Selection labels, double ratio, int64_t samples)
      : labels_(std::move(labels)), ratio_(ratio), samples_(samples) {}

  std::vector<Selection*> selections() override { return {&labels_}; }
  bool is_done() const override { return is_done_; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    return labels_.for_each(step,
                            [&](const TensorRow& row) -> Status { return add(step, row, hits); });
  }

 private:
  struct Counts {
    std::map<int64_t, int64_t> by_class;
    int64_t total = 0;
    bool is_told = false;
  };

  Status add(const StepView& step, const TensorRow& row, Hits& hits) {
    SMD_TRY(const TensorValue* value, step.value(row));
    // One label for each sample; several belong to sequences, whose words are never balanced.
    const bool is_single =
        value->shape.size() == 1 || (value->shape.size() == 2 && value->shape[1] == 1);
    if (!is_single) return {};
    const auto classes = label_classes(value->view());
    if (!classes.ok()) {
      is_done_ = true;
      return {};
    }
    Counts& counts = counts_[row.tensor];
    for (int64_t one : *classes) ++counts.by_class[one];
    counts.total += static_cast<int64_t>(classes->size());
    if (counts.is_told || counts.total < samples_) return {};
    if (counts.by_class.size() < 2 || counts.by_class.size() > kMostClasses) return {};
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto rarest = std::ranges::min_element(counts.by_class, by_count);
    const auto usual = std::ranges::max_element(counts.by_class, by_count);
    const double ratio = static_cast<double>(usual->second) / static_cast<double>(rarest->second);
    // A class must be rare beyond chance: were it as frequent as allowed, four times as many of it
    // are expected.
    const double allowed = static_cast<double>(usual->second) / ratio_;
    if (!(ratio > ratio_) || allowed < 4) return {};
    counts.is_told = true;
    Violation* hit = hits.add(step, row, "imbalance", ratio, Op::above, ratio_);
    if (hit != nullptr) {
      hit->with("samples", Json(counts.total))
          .with("rarest_class", Json(rarest->first))
          .with("rarest_count", Json(rarest->second))
          .with("largest_class", Json(usual->first))
          .with("largest_count", Json(usual->second));
    }
    hits.say(fmt::format("Of {} labels, {} are of class {} and only {} of class {}.", counts.total,
                         usual->second, usual->first, rarest->second, rarest->first));
    return {};
  }

  Selection labels_;
  double ratio_;
  int64_t samples_;
  std::map<uint32_t, Counts> counts_;
  bool is_done_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "ratio",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "The largest class may have so many times the labels of the rarest one.",
     .range = "(1,]"},
    {.name = "samples",
     .type = ParameterType::integer,
     .default_text = "200",
     .help = "Labels that must have been seen before anything is said.",
     .range = "[1,]"},
    {.name = "labels_regex",
     .type = ParameterType::list,
     .default_text = "(^|[/_.])labels$",
     .help = "The labels; those of the collection labels are judged, too."},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLabels}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto labels, Selection::create({.what = "labels",
                                          .collections = {std::string(collection_keys::kLabels)},
                                          .patterns = parameters.list("labels_regex"),
                                          .values = true},
                                         parameters));
  return make_rule<LabelBalance>(std::move(labels), parameters.real("ratio"),
                                 parameters.integer("samples"));
}

}  // namespace

extern const RuleKind label_balance;
const RuleKind label_balance = {
    .name = "LabelBalance",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "Some class has far fewer training labels than others.",
    .sees =
        "Labels of the training, one for each sample, counted over all steps; fires when the "
        "largest class has more than ratio times the labels of the rarest one. Labels of "
        "sequences are left out, as words are never balanced.",
    .why =
        "A model that never predicts the rare class has a low loss and a high accuracy, and is "
        "useless for what the rare class is about.",
    .fix =
        "Collect more samples of the rare class, draw it more often, or give it a larger weight "
        "in the loss. Judge the model by the recall of each class.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
