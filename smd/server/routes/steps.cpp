#include "smd/server/choice.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr size_t kMostSteps = 1'000'000;
constexpr ParameterSpec kParameters[] = {kModeParameter};

Result<std::string> body(const ChosenRun& chosen, Mode mode) {
  const Snapshot& snapshot = *chosen.facts->snapshot;
  const auto steps = snapshot.steps(mode, true);
  const size_t left_out = steps.size() > kMostSteps ? steps.size() - kMostSteps : 0;
  std::vector<uint32_t> rows;
  Json step = Json::array();
  Json global = Json::array();
  Json complete = Json::array();
  // Of repeated steps of a mode the first counts, as everywhere.
  size_t at = 0;
  for (size_t i = left_out; i < steps.size(); ++i) {
    const StepRow* const row = snapshot.find_row(mode, steps[i]);
    if (row == nullptr) continue;
    while (at < snapshot.row_count() && snapshot.row(at).info.step < row->info.step) ++at;
    if (at == snapshot.row_count() || snapshot.row(at).info.step != row->info.step) at = 0;
    while (snapshot.row(at).info.step != row->info.step) ++at;
    rows.push_back(static_cast<uint32_t>(at));
    step.push_back(steps[i]);
    global.push_back(row->info.step);
    complete.push_back(snapshot.is_complete(*row));
  }
  Json wall = Json::array();
  for (const double secs : chosen.run->wall_secs(snapshot, rows)) wall.push_back(finite(secs));
  return body_of({{"revision", chosen.facts->revision},
                  {"mode", name_of(mode)},
                  {"step", std::move(step)},
                  {"global_step", std::move(global)},
                  {"wall_secs", std::move(wall)},
                  {"complete", std::move(complete)},
                  {"left_out", left_out}});
}

}  // namespace

extern const Route steps;
const Route steps = {
    .path = "/api/runs/{run}/steps",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(const Mode mode, question.query.mode());
      SMD_TRY(ChosenRun chosen, choose_readable_run(question.site, question.run));
      return Answer{.version = chosen.version(),
                    .body = [chosen, mode] { return body(chosen, mode); }};
    },
};

}  // namespace smd::server::route_list
