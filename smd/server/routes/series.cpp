#include <fmt/format.h>

#include <algorithm>

#include "smd/server/choice.h"
#include "smd/server/numbers_over_time.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr size_t kMostSeries = 256;
constexpr size_t kMostStatistics = 32;
constexpr size_t kMostWorkers = 64;
// Of tensors of which only values were saved.
constexpr const char* kComputed[] = {"mean", "std", "min", "max", "l2"};

constexpr ParameterSpec kParameters[] = {{.name = "tensor", .is_repeated = true},
                                         {.name = "id", .is_repeated = true},
                                         {.name = "statistic", .is_repeated = true},
                                         {.name = "worker", .is_repeated = true},
                                         kModeParameter,
                                         kFromParameter,
                                         kToParameter,
                                         kPointsParameter};

// All that are stored of the tensors; of values, a few that follow from them.
std::vector<std::string> stored_statistics(const RunFacts& facts,
                                           const std::vector<uint32_t>& tensors) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  };
  for (const uint32_t id : tensors) {
    const Model::Tensor& tensor = *facts.model->find(id);
    for (const uint32_t slot : tensor.slots) add(facts.snapshot->slot_name(Slot::from_id(slot)));
    if (tensor.may_be_number) add("value");
    if (!tensor.slots.empty() || !tensor.has_value || tensor.is_number) continue;
    for (const char* name : kComputed) add(name);
  }
  return out;
}

struct SeriesQuestion {
  ChosenRun chosen;
  std::vector<uint32_t> tensors;
  std::vector<std::string> statistics;
  std::vector<std::string> workers;  // "": the first that has it
  SeriesChoice choice;
};

Result<std::string> body(SeriesQuestion question) {
  const RunFacts& facts = *question.chosen.facts;
  Json series = Json::array();
  size_t left_out = 0;
  for (const std::string& worker : question.workers) {
    question.choice.worker = worker;
    for (const std::string& statistic : question.statistics) {
      if (series.size() >= kMostSeries) {
        left_out += question.tensors.size();
        continue;
      }
      SMD_TRY(auto found, read_series(*question.chosen.run, facts, question.tensors, statistic,
                                      question.choice));
      for (Json& one : found) {
        if (series.size() < kMostSeries) {
          series.push_back(std::move(one));
        } else {
          ++left_out;
        }
      }
    }
  }
  return body_of(
      {{"revision", facts.revision}, {"series", std::move(series)}, {"left_out", left_out}});
}

Result<std::vector<std::string>> choose_workers(const Query& query, const RunFacts& facts) {
  std::vector<std::string> out = query.texts("worker");
  if (out.empty()) return std::vector<std::string>{""};
  if (std::ranges::find(out, "*") != out.end()) {
    out = facts.snapshot->names().workers.all();
    std::ranges::sort(out);
    if (out.size() > kMostWorkers) out.resize(kMostWorkers);
    return out;
  }
  if (out.size() > kMostWorkers) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("There are {} workers, but at most {} are allowed at once.",
                             out.size(), kMostWorkers)};
  }
  for (const std::string& worker : out) SMD_RETURN_IF_ERROR(check_worker(facts, worker));
  return out;
}

}  // namespace

extern const Route series;
const Route series = {
    .path = "/api/runs/{run}/series",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      const Query& query = question.query;
      SeriesQuestion asked;
      SMD_TRY(asked.choice.mode, query.mode());
      SMD_TRY(asked.choice.range, choose_steps(query));
      SMD_TRY(const auto points, query.integer("points", {1, kMostPoints}));
      asked.choice.points = static_cast<size_t>(points.value_or(kDefaultPoints));
      asked.statistics = query.texts("statistic");
      if (asked.statistics.size() > kMostStatistics) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("There are {} statistics, but at most {} are allowed at once.",
                                 asked.statistics.size(), kMostStatistics)};
      }
      SMD_TRY(asked.chosen, choose_readable_run(question.site, question.run));
      const RunFacts& facts = *asked.chosen.facts;
      SMD_TRY(asked.tensors, choose_tensors(query, facts));
      SMD_TRY(asked.workers, choose_workers(query, facts));
      for (const std::string& name : asked.statistics) {
        SMD_TRY(const Statistic known, Statistic::find(facts, name));
        (void)known;
      }
      if (asked.statistics.empty()) asked.statistics = stored_statistics(facts, asked.tensors);
      std::string version = asked.chosen.version();
      return Answer{.version = std::move(version), .body = [asked] { return body(asked); }};
    },
};

}  // namespace smd::server::route_list
