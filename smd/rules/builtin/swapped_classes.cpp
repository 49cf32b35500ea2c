#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "smd/collection/builtin.h"
#include "smd/rules/classes.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr int64_t kLeastSamples = 10;  // of each class

using ClassPair = std::pair<int64_t, int64_t>;

class SwappedClasses final : public Rule {
 public:
  SwappedClasses(Selection labels, Selection predictions, double share, int64_t patience)
      : labels_(std::move(labels)),
        predictions_(std::move(predictions)),
        share_(share),
        patience_(patience) {}

  std::vector<Selection*> selections() override { return {&labels_, &predictions_}; }
  bool is_done() const override { return is_done_; }

  Status observe(const StepView& step, Hits& hits) override {
    const bool is_eval = step.info().mode == Mode::eval;
    if (!is_eval) close(step.run(), hits);
    std::map<uint32_t, const TensorRow*> labels;
    labels_.for_each(step, [&](const TensorRow& row) { labels.try_emplace(row.worker, &row); });
    return predictions_.for_each(step, [&](const TensorRow& row) -> Status {
      const auto label = labels.find(row.worker);
      if (label == labels.end() || !is_eval) return {};
      const auto pairs = read_class_pairs(step, *label->second, row, Scores::if_needed);
      if (!pairs.ok()) {
        is_done_ = pairs.error().code == ErrorCode::unsupported;
        return is_done_ ? Status() : pairs.error();
      }
      for (size_t i = 0; i < pairs->labels.size(); ++i) {
        ++counts_[{pairs->labels[i], pairs->predictions[i]}];
        ++totals_[pairs->labels[i]];
      }
      at_ = Place{step.info(), step.wall_secs(), row.tensor, row.worker};
      return {};
    });
  }

  Status finish(const RunView& run, Hits& hits) override {
    close(run, hits);
    return {};
  }

  std::optional<std::string> missing() const override {
    if (has_judged_) return std::nullopt;
    return "It needs classes as labels and predictions of evaluations, and the run has none.";
  }

 private:
  struct Place {
    StepInfo step;
    double wall_secs = 0;
    uint32_t tensor = 0;
    uint32_t worker = 0;
  };

  double share_of(int64_t label, int64_t prediction) const {
    const auto count = counts_.find({label, prediction});
    const auto total = totals_.find(label);
    if (count == counts_.end() || total == totals_.end() || total->second < kLeastSamples) return 0;
    return static_cast<double>(count->second) / static_cast<double>(total->second);
  }

  // The end of one evaluation.
  void close(const RunView& run, Hits& hits) {
    if (!at_) return;
    has_judged_ = true;
    std::map<ClassPair, int64_t> next;
    for (const auto& [pair, count] : counts_) {
      const auto [a, b] = pair;
      if (a >= b || share_of(a, b) <= share_ || share_of(b, a) <= share_) continue;
      const auto before = in_a_row_.find(pair);
      const int64_t checks = next[pair] = before == in_a_row_.end() ? 1 : before->second + 1;
      if (checks != patience_) continue;
      hits.set_step(at_->step, at_->wall_secs);
      Violation* hit = hits.add(run, at_->tensor, at_->worker, "swapped_share",
                                std::min(share_of(a, b), share_of(b, a)), Op::above, share_);
      if (hit != nullptr) hit->with("class", Json(a)).with("taken_for", Json(b));
      hits.say(
          fmt::format("{:.0f} % of class {} are taken for class {}, and {:.0f} % of {} for "
                      "{}, in {} evaluations in a row.",
                      100 * share_of(a, b), a, b, 100 * share_of(b, a), b, a, checks));
    }
    in_a_row_ = std::move(next);
    counts_.clear();
    totals_.clear();
    at_.reset();
  }

  Selection labels_;
  Selection predictions_;
  double share_;
  int64_t patience_;
  // Of the evaluation that is open.
  std::map<ClassPair, int64_t> counts_;
  std::map<int64_t, int64_t> totals_;
  std::optional<Place> at_;
  std::map<ClassPair, int64_t> in_a_row_;  // evaluations
  bool has_judged_ = false;
  bool is_done_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.5",
     .help = "Of each of the two classes, more than this share is taken for the other.",
     .range = "(0,1)"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "So many evaluations in a row are an alarm.",
     .range = "[1,]"},
    {.name = "labels_regex",
     .type = ParameterType::list,
     .default_text = "(^|[/_.])labels$",
     .help = "The labels."},
    {.name = "predictions_regex",
     .type = ParameterType::list,
     .default_text = "(^|[/_.])predictions$",
     .help = "The predictions, as classes or as one score for each class."},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLabels},
                                              {collection_keys::kPredictions}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto labels,
          Selection::create(
              {.what = "labels", .patterns = parameters.list("labels_regex"), .values = true},
              parameters));
  SMD_TRY(auto predictions, Selection::create({.what = "predictions",
                                               .patterns = parameters.list("predictions_regex"),
                                               .values = true},
                                              parameters));
  return make_rule<SwappedClasses>(std::move(labels), std::move(predictions),
                                   parameters.real("share"), parameters.integer("patience"));
}

}  // namespace

extern const RuleKind swapped_classes;
const RuleKind swapped_classes = {
    .name = "SwappedClasses",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "Two classes are taken for each other in evaluations.",
    .sees =
        "Labels and predictions of each evaluation; fires when most samples of one class are "
        "predicted as another one and most of that one as the first, in several evaluations in "
        "a row.",
    .why =
        "A model that has not learned takes many classes for one. One that takes two exactly for "
        "each other has learned them well, from training labels that are swapped.",
    .fix =
        "Compare how labels become numbers in the training set and in the evaluation set: sorted "
        "names, a mapping of an older version, files of two sources.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
