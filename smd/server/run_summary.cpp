#include "smd/server/run_summary.h"

#include <fmt/format.h>

namespace smd::server {
namespace {

Json optional_number(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

Json run_summary(const ServedRun& run, const RunFacts& facts) {
  const size_t rows = facts.snapshot->row_count();
  Json findings = nullptr;
  if (const auto verdict = run.verdict()) {
    findings = {{"error", verdict->counts[2]},
                {"warning", verdict->counts[1]},
                {"info", verdict->counts[0]}};
  }
  return {{"id", run.id()},
          {"name", run.name()},
          {"path", run.location()},
          {"state", name_of(facts.state)},
          {"revision", facts.revision},
          {"catalogue", facts.catalogue},
          {"steps", rows},
          {"last_step", rows == 0 ? Json(nullptr) : Json(facts.snapshot->row(rows - 1).info.step)},
          {"tensors", facts.model->tensors.size()},
          {"workers", facts.snapshot->workers().size()},
          {"first_wall_secs", optional_number(facts.first_wall_secs)},
          {"last_wall_secs", optional_number(facts.last_wall_secs)},
          {"findings", std::move(findings)},
          {"error", facts.error.empty() ? Json(nullptr) : Json(facts.error)}};
}

std::string summary_version(const ServedRun& run, const RunFacts& facts) {
  const auto verdict = run.verdict();
  return fmt::format("{}:{}:{}", run.id(), facts.revision, verdict ? verdict->number : 0);
}

}  // namespace smd::server
