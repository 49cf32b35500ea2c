#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/fingerprint.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Whether the saved gradients are those of a worker's own batch or the mean over all workers.
enum class Stage : uint8_t { unknown, local, reduced };

class GradientSynchronization final : public Rule {
 public:
  GradientSynchronization(Selection gradients, Selection inputs, Stage stage, int64_t patience,
                          double tolerance)
      : gradients_(std::move(gradients)),
        inputs_(std::move(inputs)),
        stage_(stage),
        is_stage_given_(stage != Stage::unknown),
        patience_(patience),
        tolerance_(tolerance) {}

  std::vector<Selection*> selections() override { return {&gradients_, &inputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    // What the loss functions get: equal on all workers only if the batches are.
    SMD_RETURN_IF_ERROR(count(step, inputs_));
    if (equal_ + different_ > 0) equal_inputs_ = different_ == 0 ? equal_inputs_ + 1 : 0;
    SMD_RETURN_IF_ERROR(count(step, gradients_));
    if (equal_ + different_ == 0) return {};
    // All tensors of a step must say the same: a batch that does not reach a layer says nothing.
    equal_steps_ = different_ == 0 ? equal_steps_ + 1 : 0;
    different_steps_ = equal_ == 0 ? different_steps_ + 1 : 0;
    judge(step, hits);
    return {};
  }

 private:
  // Tensors that are equal on all workers, and others.
  Status count(const StepView& step, Selection& selection) {
    equal_ = different_ = 0;
    first_equal_ = first_different_ = nullptr;
    group_.clear();
    const Status counted = selection.for_each(step, [&](const TensorRow& row) -> Status {
      if (!group_.empty() && group_.front()->tensor != row.tensor) {
        SMD_RETURN_IF_ERROR(compare_group(step));
        group_.clear();
      }
      group_.push_back(&row);
      return {};
    });
    return counted.ok() ? compare_group(step) : counted;
  }

  Status compare_group(const StepView& step) {
    if (group_.size() < 2) return {};
    // Zeros are equal everywhere.
    for (const TensorRow* row : group_) {
      if (!(step.number(*row, Statistic::abs_max) > 0)) return {};
    }
    SMD_TRY(const auto first, Fingerprint::of(step, *group_.front()));
    bool is_equal = true;
    for (const TensorRow* row : group_) {
      SMD_TRY(const auto other, Fingerprint::of(step, *row));
      const auto outcome = compare(first, other, tolerance_).outcome;
      if (outcome == Comparison::Outcome::unlike) return {};
      is_equal = is_equal && outcome == Comparison::Outcome::equal;
    }
    ++(is_equal ? equal_ : different_);
    const TensorRow*& place = is_equal ? first_equal_ : first_different_;
    if (place == nullptr) place = group_.back();
    return {};
  }

  void judge(const StepView& step, Hits& hits) {
    if (stage_ == Stage::unknown) {
      if (equal_steps_ >= patience_) stage_ = Stage::reduced;
      if (different_steps_ >= patience_) stage_ = Stage::local;
    }
    const bool is_same_batch =
        equal_steps_ >= patience_ && (stage_ == Stage::local || equal_inputs_ >= patience_);
    const bool is_apart = stage_ == Stage::reduced && different_ > 0;
    if (is_same_batch && !is_told_) {
      hits.add(step, *first_equal_, "equal_gradients", static_cast<double>(equal_), Op::above, 0);
      hits.say(
          fmt::format("All {} gradients are equal on all workers in {} steps{}: the workers "
                      "get the same batches.",
                      equal_, equal_steps_,
                      equal_inputs_ >= patience_ ? ", and so are the inputs of the loss" : ""));
    } else if (is_apart && !is_told_) {
      hits.add(step, *first_different_, "different_gradients", static_cast<double>(different_),
               Op::above, 0);
      hits.say(
          fmt::format("{} gradients, '{}' among them, differ between workers after the "
                      "reduction{}.",
                      different_, step.tensor(*first_different_),
                      is_stage_given_ ? "" : "; before this step all were equal"));
    }
    is_told_ = is_same_batch || is_apart;
  }

  Selection gradients_;
  Selection inputs_;
  Stage stage_;
  bool is_stage_given_;
  int64_t patience_;
  double tolerance_;
  std::vector<const TensorRow*> group_;
  int64_t equal_ = 0;      // tensors of this step
  int64_t different_ = 0;  // tensors of this step
  const TensorRow* first_equal_ = nullptr;
  const TensorRow* first_different_ = nullptr;
  int64_t equal_inputs_ = 0;     // steps in a row
  int64_t equal_steps_ = 0;      // in a row
  int64_t different_steps_ = 0;  // in a row
  bool is_told_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kAllWorkers,
    {.name = "stage",
     .type = ParameterType::text,
     .default_text = "",
     .help = "What was saved: 'local' gradients of each worker's own batch, or those after they "
             "were 'reduced' over all workers; not given, the first steps tell.",
     .choices = "local reduced"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "Steps in a row after which equal or different gradients are no accident.",
     .range = "[1,]"},
    {.name = "tolerance",
     .type = ParameterType::real,
     .default_text = "1e-6",
     .help = "How far saved sums and norms may be apart, relative to the larger one; values, "
             "minima and maxima must be the same.",
     .range = "[0,1)"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Stage stage = Stage::unknown;
  if (parameters.has("stage")) {
    stage = parameters.text("stage") == "local" ? Stage::local : Stage::reduced;
  }
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::abs_max},
                             .context = fingerprint_statistics()},
                            parameters));
  SMD_TRY(auto inputs, Selection::create({.what = "inputs of loss functions",
                                          .patterns = {"(?i)loss_input_[0-9]+$"},
                                          .statistics = {Statistic::abs_max},
                                          .context = fingerprint_statistics(),
                                          .is_required = false},
                                         parameters));
  return make_rule<GradientSynchronization>(std::move(gradients), std::move(inputs), stage,
                                            parameters.integer("patience"),
                                            parameters.real("tolerance"));
}

}  // namespace

extern const RuleKind gradient_synchronization;
const RuleKind gradient_synchronization = {
    .name = "GradientSynchronization",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Gradients of several workers are equal before their reduction, or differ after it.",
    .sees =
        "Each gradient on every worker that saved it at the step. Local gradients that are equal "
        "on all workers for patience steps, and reduced ones that differ, are an alarm; which of "
        "the two were saved is a parameter or follows from the first steps. Equal inputs of the "
        "loss functions tell of equal batches in any case.",
    .why =
        "Equal local gradients mean that all workers train on the same data, so all but one are "
        "wasted. Reduced gradients that differ drive the weights of the workers apart.",
    .fix =
        "Same data: give each worker its own part, with a distributed sampler that knows rank "
        "and world size, and seeds that depend on the rank. Different gradients: look for steps "
        "that skip the reduction or bypass the data-parallel wrapper, and for clipping on one "
        "worker only.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
