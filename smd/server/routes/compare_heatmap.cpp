#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "smd/server/choice.h"
#include "smd/server/heat_map.h"
#include "smd/server/route.h"
#include "smd/server/site.h"

namespace smd::server::route_list {
namespace {

constexpr std::string_view kWays[] = {"difference", "relative"};

constexpr auto parameters() {
  std::array<ParameterSpec, kHeatMapParameters.size() + 3> out{};
  std::copy(kHeatMapParameters.begin(), kHeatMapParameters.end(), out.begin());
  out[kHeatMapParameters.size()] = {.name = "a"};
  out[kHeatMapParameters.size() + 1] = {.name = "b"};
  out[kHeatMapParameters.size() + 2] = {.name = "as", .default_text = "relative"};
  return out;
}
constexpr auto kParameters = parameters();

float difference(float a, float b, bool is_relative) {
  if (is_missing(a) || is_missing(b)) return missing_number();
  // Two that are not finite in the same way do not differ.
  if ((std::isnan(a) && std::isnan(b)) || a == b) return 0;
  const double size = std::max(std::fabs(double{a}), std::fabs(double{b}));
  const double by = double{b} - double{a};
  return to_float(is_relative ? by / size : by);
}

struct CompareQuestion {
  const Site* site = nullptr;
  ChosenRun a;
  ChosenRun b;
  HeatMapChoice choice;
  Statistic statistic_a;
  Statistic statistic_b;
  bool is_relative = true;
  std::vector<uint32_t> tensors;    // in a, that b has, too
  std::vector<uint32_t> tensors_b;  // the same in b
};

Result<std::string> body(const CompareQuestion& asked) {
  const HeatMapChoice& choice = asked.choice;
  const size_t begin = std::min<size_t>(choice.first, asked.tensors.size());
  const size_t end = std::min<size_t>(asked.tensors.size(), begin + size_t{choice.count});
  const auto part = [&](const std::vector<uint32_t>& all) {
    return std::vector<uint32_t>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                 all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  HeatMapOptions options{.tensors = part(asked.tensors),
                         .choice_size = static_cast<uint32_t>(asked.tensors.size()),
                         .most_rows = choice.rows,
                         .most_columns = choice.columns,
                         .channels = choice.channels,
                         .revision = asked.a.facts->revision,
                         .catalogue = static_cast<uint32_t>(asked.a.facts->catalogue)};
  const Statistic::Query query{.mode = choice.mode, .worker = choice.worker, .range = choice.range};
  const auto wanted_b = part(asked.tensors_b);
  SMD_TRY(const auto a, asked.site->statistics().table(*asked.a.run, *asked.a.facts,
                                                       asked.statistic_a, query, options.tensors));
  SMD_TRY(const auto b, asked.site->statistics().table(*asked.b.run, *asked.b.facts,
                                                       asked.statistic_b, query, wanted_b));
  const auto places = [](const NumberTable& table, const std::vector<uint32_t>& ids) {
    std::unordered_map<uint32_t, size_t> known;
    for (size_t i = 0; i < table.tensors.size(); ++i) known[table.tensors[i]] = i;
    std::vector<size_t> out;
    for (const uint32_t id : ids) out.push_back(known.at(id));
    return out;
  };
  const auto places_a = places(*a, options.tensors);
  const auto places_b = places(*b, wanted_b);
  NumberTable table{.tensors = options.tensors, .steps = {}, .numbers = {}};
  size_t other = 0;
  for (size_t i = 0; i < a->steps.size(); ++i) {
    if (!choice.range.contains(a->steps[i])) continue;
    while (other < b->steps.size() && b->steps[other] < a->steps[i]) ++other;
    if (other == b->steps.size()) break;
    if (b->steps[other] != a->steps[i]) continue;
    const auto numbers = table.add_row(a->steps[i]);
    for (size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] =
          difference(a->row(i)[places_a[k]], b->row(other)[places_b[k]], asked.is_relative);
    }
  }
  options.end_step = table.steps.size();
  return heat_map(table, options);
}

}  // namespace

extern const Route compare_heatmap;
const Route compare_heatmap = {
    .path = "/api/compare/heatmap",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      const Query& query = question.query;
      SMD_TRY(const std::string id_a, query.required_text("a"));
      SMD_TRY(const std::string id_b, query.required_text("b"));
      SMD_TRY(const std::string name, query.required_text("statistic"));
      SMD_TRY(const auto way, query.choice("as", kWays));
      SMD_TRY(ChosenRun a, choose_readable_run(question.site, id_a));
      SMD_TRY(ChosenRun b, choose_readable_run(question.site, id_b));
      SMD_TRY(HeatMapChoice choice, choose_heat_map(query, *a.facts));
      if (!choice.worker.empty()) SMD_RETURN_IF_ERROR(check_worker(*b.facts, choice.worker));
      SMD_TRY(Statistic statistic_a, Statistic::find(*a.facts, name));
      SMD_TRY(Statistic statistic_b, Statistic::find(*b.facts, name));
      SMD_TRY(const auto tensors, tensors_of(choice, *a.facts, statistic_a));
      CompareQuestion asked{.site = &question.site,
                            .a = a,
                            .b = b,
                            .choice = choice,
                            .statistic_a = statistic_a,
                            .statistic_b = statistic_b,
                            .is_relative = way.value_or(1) == 1,
                            .tensors = {},
                            .tensors_b = {}};
      for (const uint32_t tensor : tensors) {
        const auto same =
            b.facts->snapshot->find_tensor(a.facts->snapshot->names().tensors[tensor]);
        const Model::Tensor* const found = same ? b.facts->model->find(*same) : nullptr;
        if (found == nullptr || !statistic_b.is_of(*found)) continue;
        asked.tensors.push_back(tensor);
        asked.tensors_b.push_back(*same);
      }
      return Answer{.version = fmt::format("{}:{}", a.facts->revision, b.facts->revision),
                    .content_type = kBinaryType,
                    .body = [asked] { return body(asked); }};
    },
};

}  // namespace smd::server::route_list
