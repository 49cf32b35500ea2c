#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kGradientPrefix = "gradient/";

struct Options {
  double ratio = 1e-3;
  double norm = 1e-4;
  double explode_ratio = 70;
  int64_t patience = 10;
};

class RelativeVanishingGradient final : public Rule {
 public:
  RelativeVanishingGradient(Selection gradients, Selection weights, const Options& options)
      : gradients_(std::move(gradients)), weights_(std::move(weights)), options_(options) {}

  std::vector<Selection*> selections() override { return {&gradients_, &weights_}; }

  Status observe(const StepView& step, Hits& hits) override {
    weights_.for_each(step, [&](const TensorRow& row) {
      // Vectors, such as biases and gains, are no layers of their own.
      if (row.shape == nullptr || row.shape->size() != 1) {
        place_of_.try_emplace(row.tensor, row.order);
      }
    });
    workers_.clear();
    gradients_.for_each(step, [&](const TensorRow& row) {
      const std::string& name = step.tensor(row);
      if (!name.starts_with(kGradientPrefix)) return;
      const auto weight = step.run().names->tensors.find(name.substr(kGradientPrefix.size()));
      const auto place = weight ? place_of_.find(*weight) : place_of_.end();
      if (place == place_of_.end()) return;
      Ends& ends = workers_[row.worker];
      if (ends.first == nullptr || place->second < ends.first_place) {
        ends.first = &row;
        ends.first_place = place->second;
      }
      if (ends.last == nullptr || place->second > ends.last_place) {
        ends.last = &row;
        ends.last_place = place->second;
      }
    });
    for (const auto& [worker, ends] : workers_) judge(step, worker, ends, hits);
    return {};
  }

 private:
  struct Ends {
    const TensorRow* first = nullptr;
    const TensorRow* last = nullptr;
    uint32_t first_place = 0;
    uint32_t last_place = 0;
  };
  struct Counts {
    int64_t vanishing = 0;  // checks in a row
    int64_t exploding = 0;
  };

  void judge(const StepView& step, uint32_t worker, const Ends& ends, Hits& hits) {
    if (ends.first == ends.last) return;
    const double first = step.number(*ends.first, Statistic::l2);
    const double last = step.number(*ends.last, Statistic::l2);
    if (!std::isfinite(first) || !(last > 0) || std::isinf(last)) return;
    const double ratio = first / last;
    Counts& counts = counts_[worker];
    counts.vanishing = ratio < options_.ratio && first < options_.norm ? counts.vanishing + 1 : 0;
    counts.exploding = ratio > options_.explode_ratio ? counts.exploding + 1 : 0;
    const bool is_vanishing = counts.vanishing == options_.patience;
    const bool is_exploding = counts.exploding == options_.patience;
    if (!is_vanishing && !is_exploding) return;
    hits.set_severity(is_vanishing ? Severity::warning : Severity::info);
    Violation* hit =
        hits.add(step, *ends.first, "norm_ratio", ratio, is_vanishing ? Op::below : Op::above,
                 is_vanishing ? options_.ratio : options_.explode_ratio);
    if (hit != nullptr) {
      hit->with("norm", first)
          .with("last_layer", Json(step.tensor(*ends.last)))
          .with("last_norm", last);
    }
    hits.say(
        fmt::format("The gradient of the first layer, '{}', has the norm {:.3g}, that of the "
                    "last one, '{}', {:.3g}: {} on its way back, {} checks in a row.",
                    step.tensor(*ends.first), first, step.tensor(*ends.last), last,
                    is_vanishing ? "it fades" : "it grows", options_.patience));
  }

  Selection gradients_;
  Selection weights_;
  Options options_;
  std::map<uint32_t, uint32_t> place_of_;  // of layers by weight, in the order of the forward pass
  std::map<uint32_t, Ends> workers_;       // of this step
  std::map<uint32_t, Counts> counts_;      // by worker
};

constexpr ParameterSpec kParameters[] = {
    {.name = "ratio",
     .type = ParameterType::real,
     .default_text = "1e-3",
     .help = "Norm of the gradient of the first layer over that of the last one below which it "
             "vanishes.",
     .range = "(0,1)"},
    {.name = "norm",
     .type = ParameterType::real,
     .default_text = "1e-4",
     .help = "The norm of the first layer's gradient must be below it, too.",
     .range = "(0,]"},
    {.name = "explode_ratio",
     .type = ParameterType::real,
     .default_text = "70",
     .help = "Ratio above which the gradient grows on its way back, which is information.",
     .range = "(1,]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "So many checks in a row are an alarm: residual branches that begin with zeros have "
             "no gradients in the first steps.",
     .range = "[1,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients},
                                              {collection_keys::kWeights}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::l2}},
                            parameters));
  SMD_TRY(auto weights, Selection::create({.what = "weights",
                                           .collections = {std::string(collection_keys::kWeights)},
                                           .exclude = {"^gradient", "^feature_importance"}},
                                          parameters));
  return make_rule<RelativeVanishingGradient>(
      std::move(gradients), std::move(weights),
      Options{.ratio = parameters.real("ratio"),
              .norm = parameters.real("norm"),
              .explode_ratio = parameters.real("explode_ratio"),
              .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind relative_vanishing_gradient;
const RuleKind relative_vanishing_gradient = {
    .name = "RelativeVanishingGradient",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Gradients fade on their way from the last layer to the first.",
    .sees =
        "The norm of the gradient of the first layer against that of the last one, the layers "
        "in the order in which weights are saved; fires when the ratio stays below its bound "
        "and the first norm is small, too.",
    .why =
        "The first layers hardly learn and keep their random features, while the last ones "
        "work with what they get; an absolute threshold sees this late or never.",
    .fix =
        "Use ReLU-like activations instead of sigmoids, residual connections, normalisation "
        "between layers, or an initialisation that keeps the scale (He, Xavier).",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
