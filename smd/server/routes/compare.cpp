#include <fmt/format.h>

#include <algorithm>

#include "smd/rules/hit.h"
#include "smd/server/choice.h"
#include "smd/server/comparisons.h"
#include "smd/server/route.h"
#include "smd/server/site.h"

namespace smd::server::route_list {
namespace {

constexpr size_t kMostNames = 1000;
constexpr ParameterSpec kParameters[] = {{.name = "a"},
                                         {.name = "b"},
                                         kModeParameter,
                                         {.name = "absolute", .default_text = "0"},
                                         {.name = "relative", .default_text = "0"}};

Json json_of(const Difference& one, const Snapshot& a) {
  const auto id = a.find_tensor(one.tensor);
  return {{"tensor", one.tensor},
          {"id", id ? Json(*id) : Json(nullptr)},
          {"worker", one.worker},
          {"step", one.step.step},
          {"mode", name_of(one.step.mode)},
          {"mode_step", one.step.mode_step},
          {"step_in_b", one.step_in_b},
          {"kind", name_of(one.kind)},
          {"reduction", one.reduction.empty() ? Json(nullptr) : Json(one.reduction)},
          {"max_absolute", rules::json_of(one.elements.max_absolute)},
          {"max_relative", rules::json_of(one.elements.max_relative)},
          {"elements", one.elements.elements},
          {"differing", one.elements.differing},
          {"worst_a", rules::json_of(one.elements.worst_a)},
          {"worst_b", rules::json_of(one.elements.worst_b)},
          {"a", one.a},
          {"b", one.b},
          {"occurrences", one.occurrences}};
}

Json json_of(const OnlyThere& only) {
  const std::vector<std::string> shown(
      only.tensors.begin(), only.tensors.begin() + static_cast<std::ptrdiff_t>(
                                                       std::min(only.tensors.size(), kMostNames)));
  int64_t records = 0;
  for (const OnlyThere::Records& one : only.records) records += one.count;
  return {{"tensors", shown},
          {"tensor_count", only.tensors.size()},
          {"step_count", only.steps.size()},
          {"workers", only.workers},
          {"record_count", records}};
}

Json json_of(const Diff& diff, const Snapshot& a) {
  Json table = Json::array();
  for (const Difference& one : diff.table) table.push_back(json_of(one, a));
  return {{"is_equal", diff.equal()},
          {"first", diff.first ? json_of(*diff.first, a) : Json(nullptr)},
          {"table", std::move(table)},
          {"differing_tensors", diff.differing_tensors},
          {"only_in_a", json_of(diff.only_in_a)},
          {"only_in_b", json_of(diff.only_in_b)},
          {"compared", diff.compared.to_json()}};
}

std::string_view name_of_state(Comparison::State state) {
  return state == Comparison::State::pending ? "pending"
         : state == Comparison::State::ready ? "ready"
                                             : "failed";
}

// A report has no time to come back later.
Result<Comparison> compare_now(const ComparisonKey& key, const ChosenRun& a, const ChosenRun& b) {
  SMD_TRY(Diff diff, Comparisons::compare(key, *a.run, *b.run, {}));
  return Comparison{.state = Comparison::State::ready,
                    .revision_a = key.revision_a,
                    .revision_b = key.revision_b,
                    .done_steps = diff.compared.steps,
                    .total_steps = diff.compared.steps,
                    .error = {},
                    .diff = std::make_shared<const Diff>(std::move(diff))};
}

}  // namespace

extern const Route compare;
const Route compare = {
    .path = "/api/compare",
    .parameters = kParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      const Query& query = question.query;
      ComparisonKey key;
      SMD_TRY(key.a, query.required_text("a"));
      SMD_TRY(key.b, query.required_text("b"));
      SMD_TRY(key.mode, query.mode());
      SMD_TRY(key.tolerance.absolute, query.number("absolute", 0));
      SMD_TRY(key.tolerance.relative, query.number("relative", 0));
      SMD_TRY(ChosenRun a, choose_readable_run(question.site, key.a));
      SMD_TRY(ChosenRun b, choose_readable_run(question.site, key.b));
      key.revision_a = a.facts->revision;
      key.revision_b = b.facts->revision;
      SMD_TRY(Comparison now, question.site.options().is_report
                                  ? compare_now(key, a, b)
                                  : question.site.comparisons().ask(key, a.run, b.run));
      return Answer{
          .version = fmt::format("{}:{}:{}:{}", now.revision_a, now.revision_b,
                                 name_of_state(now.state), now.done_steps),
          .body = [key, a, now]() -> Result<std::string> {
            return body_of(
                {{"state", name_of_state(now.state)},
                 {"a", key.a},
                 {"b", key.b},
                 {"revision_a", now.revision_a},
                 {"revision_b", now.revision_b},
                 {"done_steps", now.done_steps},
                 {"total_steps", now.total_steps},
                 {"error", now.error.empty() ? Json(nullptr) : Json(now.error)},
                 {"result", now.diff ? json_of(*now.diff, *a.facts->snapshot) : Json(nullptr)}});
          },
          .is_kept = false};
    },
};

}  // namespace smd::server::route_list
