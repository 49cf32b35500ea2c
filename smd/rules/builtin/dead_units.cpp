#include <fmt/format.h>

#include <algorithm>

#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/unit_activity.h"

namespace smd::rules::builtin {
namespace {

constexpr size_t kMostUnits = 16;

struct Options {
  double inactivity = 1;
  double layer = 50;
  int64_t samples = 50;
};

// The outputs of one layer since it was judged last.
struct Track {
  std::vector<int64_t> active;  // by unit
  int64_t samples = 0;
  bool is_told = false;
};

// Units are channels: the second axis of images, the last one of vectors and sequences.
std::optional<int64_t> channel_axis(const Shape& shape) {
  if (shape.size() < 2) return std::nullopt;
  return shape.size() >= 4 ? 1 : static_cast<int64_t>(shape.size()) - 1;
}

class DeadUnits final : public Rule {
 public:
  DeadUnits(Selection outputs, const Options& options)
      : outputs_(std::move(outputs)), options_(options) {}

  std::vector<Selection*> selections() override { return {&outputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    return outputs_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      return add(step, row, *value, hits);
    });
  }

 private:
  Status add(const StepView& step, const TensorRow& row, const TensorValue& value, Hits& hits) {
    const auto axis = channel_axis(value.shape);
    if (!axis || !has_order(value.dtype) || value.view().size() == 0) return {};
    const auto layout = unit_layout(value.shape, axis);
    if (!layout) return {};
    SMD_TRY(const auto active, count_active(value.view(), *layout, {.above = 0}));
    Track& track = tracks_.of(row);
    if (track.active.size() != active.size()) {
      track.active.assign(active.size(), 0);
      track.samples = 0;
    }
    for (size_t unit = 0; unit < active.size(); ++unit) track.active[unit] += active[unit];
    track.samples += layout->samples();
    if (track.samples < options_.samples) return {};
    judge(step, row, track, hits);
    std::ranges::fill(track.active, 0);
    track.samples = 0;
    return {};
  }

  void judge(const StepView& step, const TensorRow& row, Track& track, Hits& hits) {
    Json listed = Json::array();
    size_t dead = 0;
    for (size_t unit = 0; unit < track.active.size(); ++unit) {
      if (!is_inactive(track.active[unit], track.samples, options_.inactivity)) continue;
      if (dead++ < kMostUnits) listed.push_back(unit);
    }
    const double percent =
        100 * static_cast<double>(dead) / static_cast<double>(track.active.size());
    const bool is_bad = percent > options_.layer;
    if (is_bad && !track.is_told) {
      Violation* hit = hits.add(step, row, "dead_percent", percent, Op::above, options_.layer);
      if (hit != nullptr) {
        hit->with("dead_units", Json(dead))
            .with("units", Json(track.active.size()))
            .with("samples", Json(track.samples))
            .with("unit_indices", std::move(listed));
      }
      hits.say(fmt::format("{} of the {} units of '{}' put out zero for nearly all of {} samples.",
                           dead, track.active.size(), step.tensor(row), track.samples));
    }
    track.is_told = is_bad;
  }

  Selection outputs_;
  const Options options_;
  RowTable<Track> tracks_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = "(?i)relu_output",
     .help = "Tensors in whose names one of these patterns is found are outputs of ReLUs."},
    kThresholdInactivity,
    kThresholdLayer,
    {.name = "samples",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "Outputs of each unit that are looked at together, over several saved steps if need "
             "be.",
     .range = "[1,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto outputs, Selection::create({.what = "outputs of ReLUs",
                                           .patterns = parameters.list("tensor_regex"),
                                           .values = true},
                                          parameters));
  return make_rule<DeadUnits>(std::move(outputs),
                              Options{.inactivity = parameters.real(kThresholdInactivity.name),
                                      .layer = parameters.real(kThresholdLayer.name),
                                      .samples = parameters.integer("samples")});
}

}  // namespace

extern const RuleKind dead_units;
const RuleKind dead_units = {
    .name = "DeadUnits",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Most ReLU units of a layer put out zero for every sample.",
    .sees =
        "Saved outputs of ReLUs: how many samples each unit is active for, over as many saved "
        "steps as it takes to have enough samples. Channels of convolutions and features of "
        "sequences are the units. DeadRelu judges every step for itself and each place of an "
        "image.",
    .why =
        "A unit that is zero for all samples gets no gradient and stays so for ever; a layer of "
        "such units passes nothing on.",
    .fix =
        "Lower the learning rate, use leaky ReLUs, GELU or a normalisation before the activation, "
        "and initialise biases at zero.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
