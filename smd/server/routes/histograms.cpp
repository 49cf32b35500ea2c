#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/picture/interval.h"
#include "smd/rules/elements.h"
#include "smd/server/choice.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr int64_t kMostSteps = 200;
constexpr int64_t kDefaultSteps = 50;
constexpr int64_t kMostBins = 512;
constexpr int64_t kDefaultBins = 64;
// Of values that one answer reads; with larger tensors there are fewer steps.
constexpr uint64_t kMostBytes = uint64_t{1} << 29;

constexpr ParameterSpec kParameters[] = {kTensorParameter,
                                         kIdParameter,
                                         kModeParameter,
                                         kWorkerParameter,
                                         kFromParameter,
                                         kToParameter,
                                         {.name = "steps", .default_text = "50"},
                                         {.name = "bins", .default_text = "64"}};

struct HistogramQuestion {
  ChosenRun chosen;
  uint32_t tensor = 0;
  Mode mode = Mode::global;
  std::string worker;
  StepRange range;
  size_t most_steps = 0;
  size_t bins = 0;
};

struct Saved {
  Step step = 0;
  Location at;
};

// Evenly, with the first and the last.
std::vector<Saved> thinned(const std::vector<Saved>& all, size_t most) {
  if (all.size() <= most) return all;
  if (most == 1) return {all.back()};
  std::vector<Saved> out;
  for (size_t i = 0; i < most; ++i) out.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return out;
}

struct Extent {
  Interval finite;
  int64_t nonfinite = 0;
};

Result<Extent> extent_of(const TensorView& view) {
  Extent out;
  SMD_RETURN_IF_ERROR(rules::for_each_block(view, [&](int64_t, std::span<const double> block) {
    for (const double number : block) {
      if (std::isfinite(number)) {
        out.finite.add(number);
      } else {
        ++out.nonfinite;
      }
    }
  }));
  return out;
}

// Of values that lie in the interval.
Result<std::vector<int64_t>> count(const TensorView& view, const Interval& all, size_t bins) {
  std::vector<int64_t> out(bins, 0);
  SMD_RETURN_IF_ERROR(rules::for_each_block(view, [&](int64_t, std::span<const double> block) {
    for (const double number : block) {
      if (!std::isfinite(number)) continue;
      const auto bin = static_cast<size_t>(all.part(number) * static_cast<double>(bins));
      ++out[std::min(bins - 1, bin)];
    }
  }));
  return out;
}

Result<std::string> body(const HistogramQuestion& question) {
  const RunFacts& facts = *question.chosen.facts;
  const Snapshot& snapshot = *facts.snapshot;
  const Trial& trial = *question.chosen.run->trial();
  const auto worker =
      question.worker.empty() ? std::nullopt : snapshot.names().workers.find(question.worker);
  std::vector<Saved> all;
  uint64_t largest = 1;
  for (const Step step : snapshot.steps(question.mode, true)) {
    if (!question.range.contains(step)) continue;
    const StepRow* const row = snapshot.find_row(question.mode, step);
    const auto at = snapshot.find(*row, question.tensor, Slot::value(), worker);
    if (!at) continue;
    largest = std::max(largest, snapshot.entry(*at).length);
    all.push_back({step, *at});
  }
  const size_t affordable = std::max<uint64_t>(1, kMostBytes / largest);
  const auto chosen = thinned(all, std::min(question.most_steps, affordable));

  // Twice over the values, as the edges are known only after the first time.
  std::vector<Extent> extents;
  std::vector<Saved> used;
  Interval all_values;
  const auto read = [&](const Saved& saved) { return trial.read(snapshot, saved.at); };
  for (const Saved& saved : chosen) {
    SMD_TRY(const TensorValue value, read(saved));
    if (value.dtype == DType::string) continue;
    SMD_TRY(const Extent extent, extent_of(value.view()));
    extents.push_back(extent);
    used.push_back(saved);
    if (!extent.finite.empty()) {
      all_values.add(extent.finite.low);
      all_values.add(extent.finite.high);
    }
  }
  Json edges = Json::array();
  Json steps = Json::array();
  Json counts = Json::array();
  Json nonfinite = Json::array();
  Json least = Json::array();
  Json most = Json::array();
  const bool has_any = !all_values.empty();
  if (has_any && all_values.half_length() == 0) {
    // One value everywhere gets a bin of some width around it.
    const double half = std::fabs(all_values.low) * 0.5;
    all_values.widen(half < std::numeric_limits<double>::min() ? 0.5 : half);
  }
  for (size_t i = 0; has_any && i <= question.bins; ++i) {
    edges.push_back(all_values.at(static_cast<double>(i) / static_cast<double>(question.bins)));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    steps.push_back(used[i].step);
    nonfinite.push_back(extents[i].nonfinite);
    least.push_back(finite(extents[i].finite.low));
    most.push_back(finite(extents[i].finite.high));
    if (!has_any) {
      counts.push_back(Json::array());
      continue;
    }
    SMD_TRY(const TensorValue value, read(used[i]));
    SMD_TRY(const auto bins, count(value.view(), all_values, question.bins));
    counts.push_back(bins);
  }
  return body_of({{"revision", facts.revision},
                  {"tensor", snapshot.names().tensors[question.tensor]},
                  {"id", question.tensor},
                  {"mode", name_of(question.mode)},
                  {"worker", question.worker.empty() ? Json(nullptr) : Json(question.worker)},
                  {"edges", std::move(edges)},
                  {"steps", std::move(steps)},
                  {"counts", std::move(counts)},
                  {"nonfinite", std::move(nonfinite)},
                  {"min", std::move(least)},
                  {"max", std::move(most)},
                  {"steps_with_value", all.size()}});
}

}  // namespace

extern const Route histograms;
const Route histograms = {
    .path = "/api/runs/{run}/histograms",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      const Query& query = question.query;
      HistogramQuestion asked;
      SMD_TRY(asked.mode, query.mode());
      SMD_TRY(asked.range, choose_steps(query));
      SMD_TRY(const auto steps, query.integer("steps", {1, kMostSteps}));
      SMD_TRY(const auto bins, query.integer("bins", {1, kMostBins}));
      asked.most_steps = static_cast<size_t>(steps.value_or(kDefaultSteps));
      asked.bins = static_cast<size_t>(bins.value_or(kDefaultBins));
      SMD_TRY(asked.chosen, choose_readable_run(question.site, question.run));
      SMD_TRY(asked.tensor, choose_tensor(query, *asked.chosen.facts));
      SMD_TRY(asked.worker, choose_worker(query, *asked.chosen.facts));
      std::string version = asked.chosen.version();
      return Answer{.version = std::move(version), .body = [asked] { return body(asked); }};
    },
};

}  // namespace smd::server::route_list
