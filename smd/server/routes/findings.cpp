#include <fmt/format.h>

#include "smd/server/choice.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr size_t kMostTensors = 1000;

Result<std::string> body(const ChosenRun& chosen, const std::shared_ptr<const Verdict>& verdict) {
  const Snapshot& snapshot = *chosen.facts->snapshot;
  Json document = {{"revision", verdict ? verdict->number : 0},
                   {"state", name_of(verdict ? verdict->state : Verdict::State::pending)},
                   {"steps", verdict ? verdict->steps : 0},
                   {"total_steps", snapshot.row_count()}};
  if (!verdict) {
    for (const char* key : {"findings", "no_issues_found", "not_evaluated", "failed", "remarks"}) {
      document[key] = Json::array();
    }
    document["unreadable_steps"] = 0;
    document["first_problem"] = nullptr;
    return body_of(document);
  }
  Json findings = Json::array();
  for (const Json& one : verdict->document["findings"]) {
    Json finding = {{"rank", findings.size() + 1}};
    finding.update(one);
    Json tensors = Json::array();
    for (const Json& hit : one["tensors"]) {
      if (tensors.size() == kMostTensors) break;
      const auto id = snapshot.find_tensor(hit["tensor"].get_ref<const std::string&>());
      tensors.push_back({{"tensor", hit["tensor"]},
                         {"id", id ? Json(*id) : Json(nullptr)},
                         {"first_step", hit["first_step"]},
                         {"hits", hit["hits"]}});
    }
    finding["tensors_left_out"] = one["tensors"].size() - tensors.size();
    finding["tensors"] = std::move(tensors);
    findings.push_back(std::move(finding));
  }
  document["findings"] = std::move(findings);
  for (const char* key : {"no_issues_found", "not_evaluated", "failed", "remarks",
                          "unreadable_steps", "first_problem"}) {
    document[key] = verdict->document[key];
  }
  return body_of(document);
}

}  // namespace

extern const Route findings;
const Route findings = {
    .path = "/api/runs/{run}/findings",
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(ChosenRun chosen, choose_run(question.site, question.run));
      chosen.run->want_verdict();
      const auto verdict = chosen.run->verdict();
      return Answer{
          .version = fmt::format("{}:{}", chosen.facts->revision, verdict ? verdict->number : 0),
          .body = [chosen, verdict] { return body(chosen, verdict); }};
    },
};

}  // namespace smd::server::route_list
