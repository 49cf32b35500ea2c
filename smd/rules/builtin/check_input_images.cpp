#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double threshold_mean = 0;
  int64_t threshold_samples = 0;
  size_t channel = 1;
  std::optional<double> threshold_std;
};

// Sums of one channel, less its first element: so the spread of pixels that are far from zero keeps
// its digits.
struct Channel {
  std::optional<double> base;
  double sum = 0;
  double square_sum = 0;
  int64_t count = 0;
  int64_t nonfinite_count = 0;

  void add(double x) {
    if (!std::isfinite(x)) {
      ++nonfinite_count;
      return;
    }
    if (!base) base = x;
    sum += x - *base;
    square_sum += (x - *base) * (x - *base);
    ++count;
  }
  void add(std::span<const double> run) {
    if (!base) {
      for (double x : run) add(x);
      return;
    }
    double part = 0;
    double part_squares = 0;
    for (double x : run) {
      const double shifted = x - *base;
      part += shifted;
      part_squares += shifted * shifted;
    }
    if (!std::isfinite(part_squares)) {
      for (double x : run) add(x);
      return;
    }
    sum += part;
    square_sum += part_squares;
    count += static_cast<int64_t>(run.size());
  }
  double mean() const { return base.value_or(NAN) + sum / static_cast<double>(count); }
  double std() const {
    const double mean_shifted = sum / static_cast<double>(count);
    const double variance = square_sum / static_cast<double>(count) - mean_shifted * mean_shifted;
    return std::sqrt(std::max(variance, 0.0));
  }
};

class CheckInputImages final : public Rule {
 public:
  CheckInputImages(Selection images, const Options& options)
      : images_(std::move(images)), options_(options) {}

  std::vector<Selection*> selections() override { return {&images_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return images_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      if (value->dtype == DType::string || value->view().size() == 0) return {};
      Input& input = by_row_[{row.tensor, row.worker}];
      SMD_RETURN_IF_ERROR(add(*value, input));
      most_images_ = std::max(most_images_, input.images);
      if (input.images >= options_.threshold_samples) judge(step, row, input, hits);
      return {};
    });
  }

  std::optional<std::string> missing() const override {
    if (most_images_ >= options_.threshold_samples) return std::nullopt;
    return fmt::format("It needs {} images (threshold_samples), and the run has {}.",
                       options_.threshold_samples, most_images_);
  }

 private:
  struct Input {
    std::vector<Channel> channels;
    int64_t images = 0;
  };

  Status add(const TensorValue& value, Input& input) const {
    const Shape& shape = value.shape;
    input.images += shape.empty() ? 1 : shape.front();
    const bool has_channels = shape.size() > options_.channel;
    const int64_t count = has_channels ? shape[options_.channel] : 1;
    int64_t inner = has_channels ? 1 : value.view().size();  // neighbours of one channel
    for (size_t i = options_.channel + 1; i < shape.size(); ++i) inner *= shape[i];
    const auto needed = static_cast<size_t>(count);
    if (input.channels.size() < needed) input.channels.resize(needed);
    return for_each_block(value.view(), [&](int64_t first, std::span<const double> block) {
      if (inner == 1) {
        auto channel = static_cast<size_t>(first % count);
        for (double x : block) {
          input.channels[channel].add(x);
          if (++channel == needed) channel = 0;
        }
        return;
      }
      const int64_t end = first + static_cast<int64_t>(block.size());
      for (int64_t at = first; at < end;) {
        const int64_t next = std::min(end, (at / inner + 1) * inner);
        input.channels[static_cast<size_t>(at / inner % count)].add(
            block.subspan(static_cast<size_t>(at - first), static_cast<size_t>(next - at)));
        at = next;
      }
    });
  }

  void judge(const StepView& step, const TensorRow& row, const Input& input, Hits& hits) const {
    Json means = Json::array();
    Json spreads = Json::array();
    int64_t nonfinite = 0;
    for (const Channel& channel : input.channels) {
      means.push_back(channel.count > 0 ? json_of(channel.mean()) : Json(nullptr));
      spreads.push_back(channel.count > 0 ? json_of(channel.std()) : Json(nullptr));
      nonfinite += channel.nonfinite_count;
    }
    const auto report = [&](size_t number, std::string_view metric, double value,
                            double threshold) {
      Violation* hit = hits.add(step, row, metric, value, Op::above, threshold);
      if (hit == nullptr) return;
      hit->with("channel", Json(number))
          .with("channel_means", means)
          .with("channel_stds", spreads)
          .with("images", Json(input.images))
          .with("nonfinite_count", Json(nonfinite));
    };
    for (size_t i = 0; i < input.channels.size(); ++i) {
      const Channel& channel = input.channels[i];
      if (channel.count == 0) continue;
      if (std::fabs(channel.mean()) > options_.threshold_mean) {
        if (hits.empty()) {
          hits.say(fmt::format(
              "Channel {} of '{}' has the mean {:.6g} over {} images; up to {:g} "
              "from zero is accepted.",
              i, step.tensor(row), channel.mean(), input.images, options_.threshold_mean));
        }
        report(i, "abs_channel_mean", std::fabs(channel.mean()), options_.threshold_mean);
      }
      const double distance = std::fabs(channel.std() - 1);
      if (options_.threshold_std && distance > *options_.threshold_std) {
        if (hits.empty()) {
          hits.say(fmt::format(
              "Channel {} of '{}' has the standard deviation {:.6g} over {} "
              "images; up to {:g} from one is accepted.",
              i, step.tensor(row), channel.std(), input.images, *options_.threshold_std));
        }
        report(i, "channel_std_distance", distance, *options_.threshold_std);
      }
    }
  }

  Selection images_;
  Options options_;
  std::map<std::pair<uint32_t, uint32_t>, Input> by_row_;
  int64_t most_images_ = 0;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "threshold_mean",
     .type = ParameterType::real,
     .default_text = "0.2",
     .help = "Fires when the mean of a channel is further from zero.",
     .range = "[0,]"},
    {.name = "threshold_samples",
     .type = ParameterType::integer,
     .default_text = "500",
     .help = "Judge when so many images were seen.",
     .range = "[1,]"},
    {.name = "regex",
     .type = ParameterType::list,
     .default_text = ".*hybridsequential0_input_0",
     .help = "Tensors in whose names one of these patterns is found hold images.",
     .aliases = "tensor_regex"},
    {.name = "channel",
     .type = ParameterType::integer,
     .default_text = "1",
     .help = "The axis of the channels, from 0; 1 for NCHW, 3 for NHWC.",
     .range = "[0,63]"},
    {.name = "threshold_std",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Fires also when the standard deviation of a channel is further from one.",
     .range = "[0,]",
     .is_extension = true},
};

constexpr CollectionRequest::Setting kSettings[] = {
    {"include_regex", ".*hybridsequential0_input_0"}, {"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{"input_image", kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.threshold_mean = parameters.real("threshold_mean"),
                  .threshold_samples = parameters.integer("threshold_samples"),
                  .channel = static_cast<size_t>(parameters.integer("channel"))};
  if (parameters.has("threshold_std")) options.threshold_std = parameters.real("threshold_std");
  SMD_TRY(auto images, Selection::create(
                           {.what = "images", .patterns = parameters.list("regex"), .values = true},
                           parameters));
  return make_rule<CheckInputImages>(std::move(images), options);
}

}  // namespace

extern const RuleKind check_input_images;
const RuleKind check_input_images = {
    .name = "CheckInputImages",
    .group = RuleGroup::application,
    .severity = Severity::warning,
    .summary = "The input images are not centred at zero.",
    .sees =
        "The mean of each channel over all images so far, once there are threshold_samples of "
        "them; fires when one is further from zero than threshold_mean.",
    .why =
        "Layers are initialised for inputs around zero. Others shift every activation of the "
        "first layers, so training begins slowly, or fails with a usual learning rate.",
    .fix =
        "Subtract the mean of each channel and divide by its standard deviation before the "
        "first layer, with the numbers of the training set, also for validation and later use. "
        "Pixels from 0 to 255 are the usual reason.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
