#include "smd/rules/diagnosis.h"

#include <algorithm>

namespace smd::rules {
namespace {

Json json_of(const std::vector<Diagnosis::Note>& notes) {
  Json out = Json::array();
  for (const Diagnosis::Note& note : notes) {
    out.push_back({{"rule", note.kind->name}, {"message", note.message}});
  }
  return out;
}

Result<std::vector<const RuleKind*>> chosen(const std::vector<std::string>& names) {
  std::vector<const RuleKind*> out;
  for (const std::string& name : names) {
    SMD_TRY(const RuleKind* kind, find_rule(name));
    if (std::ranges::find(out, kind) == out.end()) out.push_back(kind);
  }
  if (names.empty()) out.assign(rule_kinds().begin(), rule_kinds().end());
  return out;
}

}  // namespace

bool Diagnosis::has_finding(Severity least) const {
  return std::ranges::any_of(findings, [&](const Finding& f) { return f.severity >= least; });
}

Json Diagnosis::to_json() const {
  Json found = Json::array();
  for (const Finding& finding : findings) found.push_back(finding.to_json());
  Json quiet = Json::array();
  for (const RuleKind* kind : silent) quiet.push_back(kind->name);
  return {{"run", run},
          {"steps", step_count},
          {"findings", std::move(found)},
          {"no_issues_found", std::move(quiet)},
          {"not_evaluated", json_of(not_evaluated)},
          {"failed", json_of(failed)},
          {"remarks", json_of(remarks)},
          {"unreadable_steps", unreadable_steps},
          {"first_problem", first_problem.empty() ? Json(nullptr) : Json(first_problem)}};
}

Result<std::vector<Diagnosis::Note>> add_rules(const DiagnosisOptions& options, Runner& runner) {
  SMD_TRY(const auto kinds, chosen(options.rules));
  std::map<const RuleKind*, Json> parameters;
  for (const auto& [name, given] : options.parameters) {
    SMD_TRY(const RuleKind* kind, find_rule(name));
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      return Error{ErrorCode::invalid_argument, "There are parameters of " +
                                                    std::string(kind->name) +
                                                    ", which is not one of the chosen rules."};
    }
    parameters[kind].update(given);
  }
  std::vector<Diagnosis::Note> left_out;
  for (const RuleKind* kind : kinds) {
    const bool is_asked_for = !options.rules.empty() || !parameters[kind].empty();
    if (kind->writes_files && !is_asked_for) {
      left_out.push_back({kind, "It writes files, so it has to be asked for by name."});
      continue;
    }
    const bool is_hint = kind->is_hint_unasked && !is_asked_for;
    const Status added =
        runner.add(*kind, parameters[kind], is_hint ? Severity::info : Severity::error);
    if (added.ok()) continue;
    if (is_asked_for || added.error().code != ErrorCode::not_found) return added.error();
    left_out.push_back({kind, added.error().message});
  }
  return left_out;
}

Diagnosis conclude(std::string run, const Runner& runner, const TrialFeed& feed,
                   std::vector<Diagnosis::Note> left_out) {
  Diagnosis out{.run = std::move(run),
                .step_count = runner.step_count(),
                .findings = runner.findings(),
                .not_evaluated = std::move(left_out),
                .unreadable_steps = feed.unreadable_steps(),
                .first_problem = feed.first_problem()};
  for (const auto& evaluation : runner.evaluations()) {
    if (std::string remark = evaluation->remark(); !remark.empty()) {
      out.remarks.push_back({&evaluation->kind(), std::move(remark)});
    }
    if (evaluation->status() == RuleStatus::error) {
      out.failed.push_back({&evaluation->kind(), evaluation->error()});
    } else if (evaluation->hit_count() > 0) {
      continue;
    } else if (auto missing = evaluation->missing()) {
      out.not_evaluated.push_back({&evaluation->kind(), std::move(*missing)});
    } else {
      out.silent.push_back(&evaluation->kind());
    }
  }
  std::ranges::sort(out.not_evaluated, {}, [](const auto& note) { return note.kind->name; });
  return out;
}

Result<Diagnosis> diagnose(const std::shared_ptr<Trial>& trial, const DiagnosisOptions& options) {
  Runner runner({.on_fire = OnFire::keep_going, .context = options.context});
  SMD_TRY(auto left_out, add_rules(options, runner));
  TrialFeed feed(trial, {.steps = options.steps, .incomplete = true});
  SMD_RETURN_IF_ERROR(feed.advance(runner));
  runner.finish();
  return conclude(trial->name(), runner, feed, std::move(left_out));
}

}  // namespace smd::rules
