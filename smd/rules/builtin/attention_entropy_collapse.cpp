#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "smd/rules/quantile.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Checks of the beginning, whose median is what an attention comes from.
constexpr size_t kFirst = 10;

struct Options {
  double share = 0.1;
  int64_t patience = 3;
};

// The probabilities of one layer.
struct Track {
  std::vector<double> first;
  double usual = 0;
  int64_t low = 0;  // checks in a row
};

class AttentionEntropyCollapse final : public Rule {
 public:
  AttentionEntropyCollapse(Selection attention, const Options& options)
      : attention_(std::move(attention)), options_(options) {}

  std::vector<Selection*> selections() override { return {&attention_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return attention_.for_each(
        step, [&](const TensorRow& row) -> Status { return judge(step, row, hits); });
  }

  std::optional<std::string> missing() const override {
    if (has_judged_) return std::nullopt;
    return "It needs attention probabilities, rows of which sum to one, and their shape.";
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    const Shape* shape = row.shape;
    if (shape == nullptr && row.has_value) {
      SMD_TRY(const TensorValue* value, step.value(row));
      shape = &value->shape;
    }
    if (shape == nullptr || shape->size() < 3) return {};
    double rows = 1;
    for (size_t axis = 0; axis + 1 < shape->size(); ++axis) {
      rows *= static_cast<double>((*shape)[axis]);
    }
    const double norm = step.number(row, Statistic::l2);
    const double sum = step.number(row, Statistic::sum);
    // Only probabilities: all rows sum to one.
    if (!(rows > 0) || !(norm > 0) || !(std::fabs(sum / rows - 1) < 0.01)) return {};
    has_judged_ = true;
    // Of the second order: the logarithm of the number of keys that a query attends to.
    const double entropy = std::log(rows / (norm * norm));
    Track& track = tracks_.of(row, step.info().mode);
    if (track.first.size() < kFirst) {
      track.first.push_back(entropy);
      if (track.first.size() == kFirst) track.usual = quantile(track.first, 0.5);
      return {};
    }
    const double bound = options_.share * track.usual;
    track.low = entropy < bound ? track.low + 1 : 0;
    if (track.low != options_.patience) return {};
    Violation* hit = hits.add(step, row, "entropy", entropy, Op::below, bound);
    if (hit != nullptr) {
      hit->with("first_entropy", track.usual).with("keys_attended", std::exp(entropy));
    }
    hits.say(
        fmt::format("Queries of '{}' attend to {:.3g} keys, and to {:.3g} at the beginning: "
                    "each looks at one place only.",
                    step.tensor(row), std::exp(entropy), std::exp(track.usual)));
    return {};
  }

  Selection attention_;
  Options options_;
  RowTable<Track> tracks_;
  bool has_judged_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.1",
     .help = "Fires when the entropy is below this share of what it was at the beginning.",
     .range = "(0,1)"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "So many checks in a row are an alarm.",
     .range = "[1,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{.what = "attention probabilities",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .statistics = {Statistic::l2, Statistic::sum}};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.patterns.emplace_back("(?i)att.*(softmax|prob|dropout|weights)[a-z]*_output");
  }
  SMD_TRY(auto attention, Selection::create(std::move(selected), parameters));
  return make_rule<AttentionEntropyCollapse>(
      std::move(attention),
      Options{.share = parameters.real("share"), .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind attention_entropy_collapse;
const RuleKind attention_entropy_collapse = {
    .name = "AttentionEntropyCollapse",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Attention looks at a single place.",
    .sees =
        "Attention probabilities, by their norm: how many keys a query attends to on average. "
        "Fires when the logarithm of that falls below a small share of what it was in the first "
        "checks, and stays there.",
    .why =
        "A softmax that puts everything on one key has no gradient: queries and keys cannot "
        "learn any more, and the training becomes unstable or stops.",
    .fix =
        "Normalise queries and keys, lower the learning rate or lengthen the warm-up, and add "
        "weight decay to their projections. Look for a factor that is missing before the softmax, "
        "such as one over the root of the width.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
