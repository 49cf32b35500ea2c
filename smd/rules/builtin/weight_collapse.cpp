#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Track {
  double first = 0;  // norm; 0: begins at zero, or not seen yet
  bool is_known = false;
};

struct Options {
  double shrunk = 0.4;
  double share = 0.5;
  int64_t patience = 5;
};

class WeightCollapse final : public Rule {
 public:
  WeightCollapse(Selection weights, const Options& options)
      : weights_(std::move(weights)), options_(options) {}

  std::vector<Selection*> selections() override { return {&weights_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    small_.clear();
    size_t judged = 0;
    weights_.for_each(step, [&](const TensorRow& row) {
      const double norm = step.number(row, Statistic::l2);
      // Single numbers are gains, which may go anywhere.
      if (!std::isfinite(norm) || row.has(Statistic::value)) return;
      Track& track = tracks_.of(row);
      if (!track.is_known) track = {.first = norm, .is_known = true};
      if (!(track.first > 0)) return;
      ++judged;
      if (norm < options_.shrunk * track.first) small_.push_back(&row);
    });
    if (judged == 0) return {};
    const double share = static_cast<double>(small_.size()) / static_cast<double>(judged);
    in_a_row_ = share > options_.share ? in_a_row_ + 1 : 0;
    if (in_a_row_ != options_.patience) return {};
    for (const TensorRow* row : small_) {
      const double norm = step.number(*row, Statistic::l2);
      Violation* hit = hits.add(step, *row, "norm_ratio", norm / tracks_.of(*row).first, Op::below,
                                options_.shrunk);
      if (hit != nullptr) hit->with("norm", norm).with("first_norm", tracks_.of(*row).first);
    }
    hits.say(fmt::format("{} of {} weights have shrunk to less than {:.0f} % of their first norm.",
                         small_.size(), judged, 100 * options_.shrunk));
    return {};
  }

 private:
  Selection weights_;
  Options options_;
  RowTable<Track> tracks_;
  std::vector<const TensorRow*> small_;  // at this step
  int64_t in_a_row_ = 0;                 // checks
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "shrunk",
     .type = ParameterType::real,
     .default_text = "0.4",
     .help = "A weight has shrunk when its norm is below this share of its first one.",
     .range = "(0,1)"},
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.5",
     .help = "Fires when more than this share of the weights has shrunk.",
     .range = "[0,1)"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "So many checks in a row are an alarm.",
     .range = "[1,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{.what = "weights",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .statistics = {Statistic::l2},
                            .context = {Statistic::value}};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.collections.emplace_back(collection_keys::kWeights);
    selected.exclude = {"^gradient", "^feature_importance", "(?i)bias"};
  }
  SMD_TRY(auto weights, Selection::create(std::move(selected), parameters));
  return make_rule<WeightCollapse>(std::move(weights),
                                   Options{.shrunk = parameters.real("shrunk"),
                                           .share = parameters.real("share"),
                                           .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind weight_collapse;
const RuleKind weight_collapse = {
    .name = "WeightCollapse",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Most weights wither away.",
    .sees =
        "The norm of each weight against its first one; fires when most of them have shrunk to a "
        "small part of it, for several checks in a row.",
    .why =
        "Weights that something pulls to zero faster than the loss pushes them away lose what "
        "they know; in the end the model answers the same to everything.",
    .fix =
        "Lower the weight decay. With Adam, use decoupled decay (AdamW), and check that the "
        "decay is not multiplied with a large learning rate.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
