#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/held_values.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kGradientPrefix = "gradient/";

bool is_narrow(DType dtype) {
  return info_of(dtype).kind == DTypeKind::floating && size_of(dtype) <= 2;
}

// A weight of one worker.
struct Track {
  HeldValue first;
  Step since = 0;
  bool is_told = false;
};

class LostUpdates final : public Rule {
 public:
  LostUpdates(Selection weights, Selection gradients, HeldValues held, double share, int64_t steps)
      : weights_(std::move(weights)),
        gradients_(std::move(gradients)),
        held_(std::move(held)),
        share_(share),
        steps_(steps) {}

  std::vector<Selection*> selections() override { return {&weights_, &gradients_}; }

  Status observe(const StepView& step, Hits& hits) override {
    const StepInfo& at = step.info();
    if (at.mode == Mode::eval || at.mode == Mode::predict) return {};
    gradient_of_.clear();
    gradients_.for_each(step, [&](const TensorRow& row) {
      gradient_of_[{row.tensor, row.worker}] = &row;
    });
    return weights_.for_each(
        step, [&](const TensorRow& row) -> Status { return judge(step, row, hits); });
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    SMD_TRY(const TensorValue* value, step.value(row));
    if (!is_narrow(value->dtype)) return {};
    const StepInfo& at = step.info();
    const Step now = at.mode == Mode::global ? at.step : at.mode_step;
    Track& track = tracks_.of(row);
    if (!track.first || track.first->shape != value->shape || track.first->dtype != value->dtype) {
      track.first = held_.hold(*value, step.tensor(row));
      track.since = now;
      return {};
    }
    if (track.is_told || now - track.since < steps_) return {};
    const auto name =
        step.run().names->tensors.find(std::string(kGradientPrefix) + step.tensor(row));
    if (!name) return {};
    const auto found = gradient_of_.find({*name, row.worker});
    if (found == gradient_of_.end()) return {};
    SMD_TRY(const TensorValue* gradient, step.value(*found->second));
    if (gradient->shape != value->shape) return {};
    SMD_TRY(const auto pushes, to_doubles(gradient->view()));
    int64_t pushed = 0;
    int64_t kept = 0;
    SMD_RETURN_IF_ERROR(
        for_each_pair(value->view(), track.first->view(),
                      [&](int64_t first, std::span<const double> a, std::span<const double> b) {
                        for (size_t i = 0; i < a.size(); ++i) {
                          // A weight of zero has no smallest step that could swallow an update.
                          if (pushes[static_cast<size_t>(first) + i] == 0 || b[i] == 0) continue;
                          ++pushed;
                          kept += a[i] == b[i] ? 1 : 0;
                        }
                        return true;
                      }));
    if (pushed == 0) return {};
    const double share = static_cast<double>(kept) / static_cast<double>(pushed);
    if (!(share > share_)) return {};
    track.is_told = true;
    Violation* hit = hits.add(step, row, "lost_share", share, Op::above, share_);
    if (hit != nullptr) {
      hit->with("dtype", Json(name_of(value->dtype)))
          .with("elements", Json(pushed))
          .with("since_step", Json(track.since));
    }
    hits.say(
        fmt::format("{:.0f} % of '{}' are what they were {} steps ago, though their gradients "
                    "are not zero: {} swallows the updates.",
                    100 * share, step.tensor(row), now - track.since, name_of(value->dtype)));
    return {};
  }

  Selection weights_;
  Selection gradients_;
  HeldValues held_;
  double share_;
  int64_t steps_;
  std::map<std::pair<uint32_t, uint32_t>, const TensorRow*> gradient_of_;  // at this step
  RowTable<Track> tracks_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.5",
     .help = "Of the elements with a gradient; fires when more of them are unchanged.",
     .range = "(0,1)"},
    {.name = "steps",
     .type = ParameterType::integer,
     .default_text = "20",
     .help = "How far two values must be apart to be compared. A copy in float32 carries small "
             "updates over within so many steps.",
     .range = "[1,]"},
    kMaxMemoryMib,
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights},
                                              {collection_keys::kGradients}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  SMD_TRY(auto weights, Selection::create({.what = "weights",
                                           .collections = {std::string(collection_keys::kWeights)},
                                           .exclude = {"^gradient", "^feature_importance"},
                                           .values = true},
                                          parameters));
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .values = true},
                            parameters));
  return make_rule<LostUpdates>(std::move(weights), std::move(gradients),
                                HeldValues("LostUpdates", parameters, context.log),
                                parameters.real("share"), parameters.integer("steps"));
}

}  // namespace

extern const RuleKind lost_updates;
const RuleKind lost_updates = {
    .name = "LostUpdates",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Updates are smaller than what the type of the weights can hold.",
    .sees =
        "Saved weights of 16 bits and fewer with their saved gradients; fires when most elements "
        "that have a gradient are bit for bit what they were many steps before.",
    .why =
        "Near 1 the next number of bfloat16 is 0.8 % away. An update of less than half of that is "
        "rounded away, at every step anew, so training stands still though gradients flow.",
    .fix =
        "Keep a copy of the weights in float32 and update that (mixed precision), round "
        "stochastically, or raise the learning rate.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
