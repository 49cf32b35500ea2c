#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// A tensor with more zeros than this is named.
constexpr double kNamedShare = 0.9;

class MostlyZeroGradients final : public Rule {
 public:
  MostlyZeroGradients(Selection gradients, double share, int64_t patience)
      : gradients_(std::move(gradients)), share_(share), patience_(patience) {}

  std::vector<Selection*> selections() override { return {&gradients_}; }

  Status observe(const StepView& step, Hits& hits) override {
    workers_.clear();
    SMD_RETURN_IF_ERROR(
        gradients_.for_each(step, [&](const TensorRow& row) -> Status { return add(step, row); }));
    for (const auto& [worker, now] : workers_) judge(step, worker, now, hits);
    return {};
  }

 private:
  struct Now {
    double zeros = 0;
    double size = 0;
    std::vector<std::pair<double, const TensorRow*>> worst;
  };

  Status add(const StepView& step, const TensorRow& row) {
    SMD_TRY(const TensorValue* value, step.value(row));
    const auto size = static_cast<double>(value->view().size());
    const double zeros = step.number(row, Statistic::zero_count);
    Now& now = workers_[row.worker];
    now.zeros += zeros;
    now.size += size;
    if (zeros >= kNamedShare * size) now.worst.emplace_back(zeros / size, &row);
    return {};
  }

  void judge(const StepView& step, uint32_t worker, const Now& now, Hits& hits) {
    const double share = now.zeros / now.size;
    int64_t& in_a_row = in_a_row_[worker];
    in_a_row = share >= share_ ? in_a_row + 1 : 0;
    if (in_a_row != patience_) return;
    for (const auto& [zeros, row] : now.worst) {
      hits.add(step, *row, "zero_share", zeros, Op::above, kNamedShare);
    }
    if (now.worst.empty()) hits.add("", "zero_share", share, Op::above, share_);
    hits.say(fmt::format(
        "{:.0f} % of all elements of the gradients are exactly zero, {} checks in "
        "a row{}.",
        100 * share, in_a_row,
        now.worst.empty() ? "" : fmt::format("; in {} tensors nearly all are", now.worst.size())));
  }

  Selection gradients_;
  double share_;
  int64_t patience_;
  std::map<uint32_t, Now> workers_;       // of this step
  std::map<uint32_t, int64_t> in_a_row_;  // by worker
};

constexpr ParameterSpec kParameters[] = {
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.7",
     .help = "Fires when at least this share of all elements of all gradients is zero.",
     .range = "(0,1]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "So many checks in a row are an alarm: residual branches that begin with zeros have "
             "no gradients in the first steps.",
     .range = "[1,]"},
    {.name = "exclude_regex",
     .type = ParameterType::list,
     .default_text = "(?i)embed|lookup",
     .help = "Tensors in whose names one of these patterns is found are left out: tables of which "
             "a batch uses few rows.",
     .is_extension = true},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::zero_count},
                             .values = true},
                            parameters));
  return make_rule<MostlyZeroGradients>(std::move(gradients), parameters.real("share"),
                                        parameters.integer("patience"));
}

}  // namespace

extern const RuleKind mostly_zero_gradients;
const RuleKind mostly_zero_gradients = {
    .name = "MostlyZeroGradients",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Most elements of the gradients are exactly zero: units have died.",
    .sees =
        "The share of zeros over all gradients, without embeddings; fires when it stays above "
        "its bound, and names the tensors that hold nearly nothing else.",
    .why =
        "A ReLU whose input is negative for every sample passes no gradient back, so it stays "
        "dead for the rest of the training, and with it all weights that lead to it.",
    .fix =
        "Lower the learning rate, use a leaky ReLU or GELU, and check biases and the scale of "
        "the inputs. In half precision gradients may also have become too small to be held: "
        "use a loss scale.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
