#include "smd/rules/metric_pairs.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace smd::rules {
namespace {

constexpr std::array<std::string_view, 4> kValidation = {"validation", "valid", "eval", "test"};
constexpr std::array<std::string_view, 8> kRising = {"auc", "aucpr", "map", "ndcg",
                                                     "acc", "pre",   "f1",  "ams"};

bool is_rising(std::string_view metric) {
  std::string plain(metric.substr(0, metric.find('@')));  // "ndcg@5"
  std::ranges::transform(plain, plain.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kRising, plain) != kRising.end() || plain.ends_with("accuracy");
}

}  // namespace

std::optional<MetricName> parse_metric_name(std::string_view tensor) {
  const size_t slash = tensor.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view last = tensor.substr(begin);
  const size_t dash = last.find('-');
  if (dash == std::string_view::npos || dash + 1 == last.size()) return std::nullopt;
  const std::string_view data = last.substr(0, dash);
  const bool is_training = data == "train";
  if (!is_training && std::ranges::find(kValidation, data) == kValidation.end()) {
    return std::nullopt;
  }
  const std::string_view metric = last.substr(dash + 1);
  return MetricName{.metric = std::string(tensor.substr(0, begin)) + std::string(metric),
                    .is_training = is_training,
                    .rises = is_rising(metric)};
}

std::vector<MetricPair> find_metric_pairs(const StepView& step,
                                          std::span<const TensorRow* const> rows) {
  struct Named {
    const TensorRow* row;
    MetricName name;
  };
  std::vector<Named> named;
  for (const TensorRow* row : rows) {
    if (auto name = parse_metric_name(step.tensor(*row))) named.push_back({row, std::move(*name)});
  }
  std::vector<MetricPair> out;
  for (const Named& train : named) {
    if (!train.name.is_training) continue;
    for (const Named& other : named) {
      if (!other.name.is_training && other.name.metric == train.name.metric &&
          other.row->worker == train.row->worker) {
        out.push_back({train.row, other.row, train.name.rises});
      }
    }
  }
  return out;
}

}  // namespace smd::rules
