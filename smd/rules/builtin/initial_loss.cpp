#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// What is saved later is not the beginning any more.
constexpr Step kLastStep = 10;
// What logits with a spread of one, as usual initialisations give, add to a cross-entropy.
constexpr double kSpreadOfLogits = 0.5;

struct Options {
  std::optional<double> chance;  // nullopt: from the shape of the logits
  std::string origin;            // of it, for people
  double tolerance = 1;
  bool is_regression = false;
};

class InitialLoss final : public Rule {
 public:
  InitialLoss(Selection losses, Selection logits, Options options)
      : losses_(std::move(losses)), logits_(std::move(logits)), options_(std::move(options)) {}

  std::vector<Selection*> selections() override { return {&losses_, &logits_}; }

  Status observe(const StepView& step, Hits& hits) override {
    const StepInfo& at = step.info();
    if (at.mode == Mode::eval || at.mode == Mode::predict) return {};
    if (at.mode_step > kLastStep) {
      is_done_ = true;
      return {};
    }
    if (!options_.chance) SMD_RETURN_IF_ERROR(read_classes(step));
    losses_.for_each(step, [&](const TensorRow& row) {
      Seen& seen = seen_.of(row);
      if (!options_.chance || seen.is_judged) return;
      seen.is_judged = true;
      const double loss = step.number(row, Statistic::mean);
      const double high = *options_.chance * (1 + options_.tolerance) +
                          (options_.is_regression ? 0 : kSpreadOfLogits);
      const double low = *options_.chance * std::max(0.0, 1 - options_.tolerance);
      if (!(loss > high) && !(loss < low)) return;
      Violation* hit = hits.add(step, row, "loss", loss, loss > high ? Op::above : Op::below,
                                loss > high ? high : low);
      if (hit == nullptr) return;
      hit->with("chance", *options_.chance).with("chance_from", Json(options_.origin));
      hits.say(fmt::format("'{}' begins at {:.6g}; a model that knows nothing has {:.6g} ({}).",
                           step.tensor(row), loss, *options_.chance, options_.origin));
    });
    return {};
  }

  bool is_done() const override { return is_done_; }

 private:
  struct Seen {
    bool is_judged = false;
  };

  Status read_classes(const StepView& step) {
    return logits_.for_each(step, [&](const TensorRow& row) -> Status {
      const Shape* shape = row.shape;
      if (shape == nullptr && row.has_value) {
        SMD_TRY(const TensorValue* value, step.value(row));
        shape = &value->shape;
      }
      // Samples, classes, and whatever follows.
      if (options_.chance || shape == nullptr || shape->size() < 2 || (*shape)[1] < 2) return {};
      options_.chance = std::log(static_cast<double>((*shape)[1]));
      options_.origin = fmt::format("ln {}, by the shape of '{}'", (*shape)[1], step.tensor(row));
      return {};
    });
  }

  Selection losses_;
  Selection logits_;
  Options options_;
  RowTable<Seen> seen_;
  bool is_done_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "num_classes",
     .type = ParameterType::integer,
     .default_text = "",
     .help = "Number of classes of a classifier: the loss should begin near its logarithm.",
     .range = "[2,]"},
    {.name = "target_variance",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Variance of the targets of a regression with squared error: the loss should begin "
             "near it.",
     .range = "(0,]"},
    {.name = "tolerance_percent",
     .type = ParameterType::real,
     .default_text = "300",
     .help = "How far the first loss may be from that value; it is never allowed below zero.",
     .range = "(0,]"},
    {.name = "logits_regex",
     .type = ParameterType::list,
     .default_text = "(?i)(cross_?entropy|nll)[a-z]*_input_0$",
     .help = "Inputs of the loss function, whose second dimension is the number of classes where "
             "neither number is given."},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  if (parameters.has("num_classes") && parameters.has("target_variance")) {
    return Error{ErrorCode::invalid_argument,
                 "InitialLoss has both num_classes and target_variance; give the one that fits "
                 "the loss."};
  }
  Options options{.tolerance = parameters.real("tolerance_percent") / 100};
  if (parameters.has("num_classes")) {
    const int64_t classes = parameters.integer("num_classes");
    options.chance = std::log(static_cast<double>(classes));
    options.origin = fmt::format("ln {}", classes);
  } else if (parameters.has("target_variance")) {
    options.chance = parameters.real("target_variance");
    options.is_regression = true;
    options.origin = "the variance of the targets";
  }
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  SMD_TRY(auto logits, Selection::create({.what = "inputs of the loss function, or num_classes or "
                                                  "target_variance",
                                          .patterns = parameters.list("logits_regex"),
                                          .is_required = !options.chance},
                                         parameters));
  return make_rule<InitialLoss>(std::move(losses), std::move(logits), std::move(options));
}

}  // namespace

extern const RuleKind initial_loss;
const RuleKind initial_loss = {
    .name = "InitialLoss",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The first loss is far from that of a model that knows nothing.",
    .sees =
        "The first loss of the training, up to step 10, against the logarithm of the number of "
        "classes, with half a unit for the spread of the logits, or the variance of the targets.",
    .why =
        "An untrained classifier guesses, and its cross-entropy is the logarithm of the number "
        "of classes. A first loss far above it means that outputs are confidently wrong: a "
        "wrong head, loss or reduction, targets that are not normalised, or an initialisation "
        "that is too wide. A negative one cannot be a cross-entropy.",
    .fix =
        "Check that the loss gets logits where it expects logits and probabilities where it "
        "expects these, that it is the mean and not the sum over the batch, that labels begin "
        "at 0, and that targets of a regression are scaled.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
