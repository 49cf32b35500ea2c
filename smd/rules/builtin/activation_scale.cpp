#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// What is saved for the first time later than that was changed by training.
constexpr Step kLastStep = 10;

class ActivationScale final : public Rule {
 public:
  ActivationScale(Selection activations, double ratio)
      : activations_(std::move(activations)), ratio_(ratio) {}

  std::vector<Selection*> selections() override { return {&activations_}; }
  bool is_done() const override { return is_done_; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    if (step.info().mode_step > kLastStep) {
      is_done_ = true;
      return {};
    }
    std::map<uint32_t, std::vector<const TensorRow*>> by_worker;
    activations_.for_each(step, [&](const TensorRow& row) {
      const double spread = step.number(row, Statistic::std);
      // Constant ones say nothing of the weights before them.
      if (std::isfinite(spread) && spread > 0) by_worker[row.worker].push_back(&row);
    });
    for (auto& [worker, rows] : by_worker) {
      std::ranges::stable_sort(rows, {}, &TensorRow::order);
      judge(step, rows, hits);
    }
    // Later ones are the work of updates.
    is_done_ = !by_worker.empty();
    return {};
  }

 private:
  void judge(const StepView& step, const std::vector<const TensorRow*>& rows, Hits& hits) const {
    const TensorRow* told = nullptr;
    for (size_t i = 1; i < rows.size(); ++i) {
      const double before = step.number(*rows[i - 1], Statistic::std);
      const double after = step.number(*rows[i], Statistic::std);
      const double ratio = std::max(before, after) / std::min(before, after);
      if (!(ratio > ratio_)) continue;
      // Healthy ones are near one.
      const bool is_after = std::fabs(std::log(after)) >= std::fabs(std::log(before));
      const TensorRow& odd = is_after ? *rows[i] : *rows[i - 1];
      const TensorRow& other = is_after ? *rows[i - 1] : *rows[i];
      if (told == &odd) continue;
      told = &odd;
      Violation* hit = hits.add(step, odd, "std_ratio", ratio, Op::above, ratio_);
      if (hit == nullptr) continue;
      hit->with("std", is_after ? after : before)
          .with("neighbour", Json(step.tensor(other)))
          .with("std_of_neighbour", is_after ? before : after);
      hits.say(
          fmt::format("'{}' has a standard deviation of {:.3g}, its neighbour '{}' one of "
                      "{:.3g}.",
                      step.tensor(odd), is_after ? after : before, step.tensor(other),
                      is_after ? before : after));
    }
  }

  Selection activations_;
  double ratio_;
  bool is_done_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "ratio",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "Standard deviations of neighbouring layers may differ by this factor.",
     .range = "(1,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{.what = "inputs of activations",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .statistics = {Statistic::std}};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.patterns.emplace_back("(?i)(relu|elu|gelu|silu|swish|mish|tanh|sigmoid)_input");
  }
  SMD_TRY(auto activations, Selection::create(std::move(selected), parameters));
  return make_rule<ActivationScale>(std::move(activations), parameters.real("ratio"));
}

}  // namespace

extern const RuleKind activation_scale;
const RuleKind activation_scale = {
    .name = "ActivationScale",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Neighbouring layers begin with activations of very different size.",
    .sees =
        "The standard deviation of what goes into each activation function in the first saved "
        "step of the training, in the order of the forward pass; fires when that of two "
        "neighbours differs by more than the ratio, and names the one that is further from one.",
    .why =
        "Initialisations keep the scale from layer to layer. Where one layer is far off, its "
        "gradients are, too: it learns too fast or not at all, and no learning rate fits all.",
    .fix =
        "Initialise the weights before the named activation by their fan-in (He for ReLU, Xavier "
        "for tanh and sigmoid), or put a normalisation layer there.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
