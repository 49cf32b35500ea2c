#include <array>

#include "smd/server/choice.h"
#include "smd/server/numbers_over_time.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr size_t kMostSeries = 256;
constexpr ParameterSpec kParameters[] = {kPointsParameter};

// The value if it is a single number, else the mean, as of losses that were not averaged.
Result<std::vector<Json>> read_metric(const ChosenRun& chosen, uint32_t tensor,
                                      const SeriesChoice& choice) {
  for (const char* statistic : {"value", "mean"}) {
    SMD_TRY(auto found, read_series(*chosen.run, *chosen.facts, {tensor}, statistic, choice));
    if (!found.empty()) return found;
  }
  return std::vector<Json>();
}

Result<std::string> body(const ChosenRun& chosen, size_t points) {
  const Model& model = *chosen.facts->model;
  Json series = Json::array();
  size_t left_out = 0;
  for (const Role role : {Role::loss, Role::metric}) {
    for (const Model::Tensor& tensor : model.tensors) {
      if (tensor.role != role) continue;
      for (const Mode mode : kModes) {
        // Steps without a mode are all that some runs have.
        if ((tensor.modes >> index_of(mode) & 1) == 0) continue;
        if (series.size() >= kMostSeries) {
          ++left_out;
          continue;
        }
        SMD_TRY(auto found, read_metric(chosen, tensor.id, {.mode = mode, .points = points}));
        for (Json& one : found) series.push_back(std::move(one));
      }
    }
  }
  return body_of({{"revision", chosen.facts->revision},
                  {"series", std::move(series)},
                  {"left_out", left_out}});
}

}  // namespace

extern const Route metrics;
const Route metrics = {
    .path = "/api/runs/{run}/metrics",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(const auto points, question.query.integer("points", {1, kMostPoints}));
      SMD_TRY(ChosenRun chosen, choose_readable_run(question.site, question.run));
      const auto count = static_cast<size_t>(points.value_or(kDefaultPoints));
      return Answer{.version = chosen.version(),
                    .body = [chosen, count] { return body(chosen, count); }};
    },
};

}  // namespace smd::server::route_list
