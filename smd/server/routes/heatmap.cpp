#include <algorithm>

#include "smd/server/choice.h"
#include "smd/server/heat_map.h"
#include "smd/server/route.h"
#include "smd/server/site.h"

namespace smd::server::route_list {
namespace {

Result<std::string> body(const Site& site, const ChosenRun& chosen, const HeatMapChoice& choice,
                         const Statistic& statistic, const std::vector<uint32_t>& tensors) {
  const size_t begin = std::min<size_t>(choice.first, tensors.size());
  const size_t end = std::min<size_t>(tensors.size(), begin + size_t{choice.count});
  HeatMapOptions options{.tensors = {tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                                     tensors.begin() + static_cast<std::ptrdiff_t>(end)},
                         .choice_size = static_cast<uint32_t>(tensors.size()),
                         .most_rows = choice.rows,
                         .most_columns = choice.columns,
                         .channels = choice.channels,
                         .revision = chosen.facts->revision,
                         .catalogue = static_cast<uint32_t>(chosen.facts->catalogue)};
  SMD_TRY(
      const auto table,
      site.statistics().table(*chosen.run, *chosen.facts, statistic,
                              {.mode = choice.mode, .worker = choice.worker, .range = choice.range},
                              options.tensors));
  const auto& steps = table->steps;
  options.first_step = static_cast<size_t>(
      std::lower_bound(steps.begin(), steps.end(), choice.range.begin) - steps.begin());
  options.end_step =
      choice.range.end
          ? static_cast<size_t>(std::lower_bound(steps.begin(), steps.end(), *choice.range.end) -
                                steps.begin())
          : steps.size();
  return heat_map(*table, options);
}

}  // namespace

extern const Route heatmap;
const Route heatmap = {
    .path = "/api/runs/{run}/heatmap",
    .parameters = kHeatMapParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(const std::string name, question.query.required_text("statistic"));
      SMD_TRY(ChosenRun chosen, choose_readable_run(question.site, question.run));
      SMD_TRY(HeatMapChoice choice, choose_heat_map(question.query, *chosen.facts));
      SMD_TRY(Statistic statistic, Statistic::find(*chosen.facts, name));
      SMD_TRY(auto tensors, tensors_of(choice, *chosen.facts, statistic));
      return Answer{
          .version = chosen.version(),
          .content_type = kBinaryType,
          .body = [site = &question.site, chosen, choice, statistic, tensors = std::move(tensors)] {
            return body(*site, chosen, choice, statistic, tensors);
          }};
    },
};

}  // namespace smd::server::route_list
