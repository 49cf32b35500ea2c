#include "smd/rules/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "smd/rules/ranking.h"

namespace smd::rules {
namespace {

constexpr std::array<std::string_view, 5> kStatuses = {"InProgress", "NoIssuesFound", "IssuesFound",
                                                       "Error", "Stopped"};

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back("'" + name + "'");
  return fmt::format("{}", fmt::join(out, ", "));
}

// The reduction that tells as much; "": only the values do.
std::string_view saved_as(Statistic statistic) {
  switch (statistic) {
    case Statistic::nonfinite:
    case Statistic::has_nan:
    case Statistic::all_zero: return name_of(Statistic::abs_max);
    default: return reduction_of(statistic) ? name_of(statistic) : std::string_view();
  }
}

// "needs gradients (collection 'gradients'), which were not saved"
std::string shortage(const Selection& selection) {
  const SelectionOptions& wants = selection.options();
  std::vector<std::string> where;
  if (!wants.collections.empty()) {
    where.push_back(fmt::format("collection{} {}", wants.collections.size() > 1 ? "s" : "",
                                quoted(wants.collections)));
  }
  if (!wants.patterns.empty()) {
    where.push_back(fmt::format("names with {}", quoted(wants.patterns)));
  }
  const std::string place = where.empty() ? "" : fmt::format(" ({})", fmt::join(where, ", "));
  if (selection.matched() == 0) {
    return fmt::format("It needs {}{}, and the run has none.", wants.what, place);
  }
  std::vector<std::string_view> statistics;
  wants.statistics.for_each(
      [&](Statistic statistic) { statistics.push_back(saved_as(statistic)); });
  if (wants.values || std::ranges::find(statistics, "") != statistics.end()) {
    return fmt::format("It needs the values of {}{}, and the run has only numbers about them.",
                       wants.what, place);
  }
  return fmt::format("It needs the values or {} of {}{}, and the run has others.",
                     fmt::join(statistics, ", "), wants.what, place);
}

}  // namespace

std::string_view name_of(RuleStatus status) { return kStatuses[static_cast<size_t>(status)]; }

uint64_t Evaluation::datapoints() const {
  uint64_t sum = 0;
  for (const Selection* selection : selections_) sum += selection->judged();
  return sum;
}

std::optional<std::string> Evaluation::missing() const {
  if (selections_.empty()) return rule_->missing();
  const Selection* lacking = nullptr;
  bool has_any = false;
  for (const Selection* selection : selections_) {
    if (selection->judged() > 0) {
      has_any = true;
    } else if (selection->options().is_required) {
      return shortage(*selection);
    } else if (lacking == nullptr) {
      lacking = selection;
    }
  }
  if (has_any || lacking == nullptr) return rule_->missing();
  return shortage(*lacking);
}

std::optional<Finding> Evaluation::finding() const {
  if (hit_count_ == 0) return std::nullopt;
  Finding out = finding_;
  out.hit_count = hit_count_;
  for (const auto& [number, hits] : tensors_) out.tensors.push_back(hits);
  std::ranges::sort(out.tensors, [](const auto& a, const auto& b) {
    return std::tuple(a.first_step, b.hits, std::string_view(a.tensor)) <
           std::tuple(b.first_step, a.hits, std::string_view(b.tensor));
  });
  for (const auto& [number, name] : workers_) out.workers.push_back(name);
  std::ranges::sort(out.workers);
  return out;
}

Status Runner::add(const RuleKind& kind, const Json& parameters, Severity highest) {
  SMD_TRY(Parameters parsed, Parameters::parse(kind.name, kind.parameters, parameters));
  return add(kind, std::move(parsed), highest);
}

Status Runner::add(const RuleKind& kind, Parameters parameters, Severity highest) {
  SMD_TRY(auto rule, kind.create(parameters, options_.context));
  auto added = std::make_unique<Evaluation>();
  added->kind_ = &kind;
  added->selections_ = rule->selections();
  added->rule_ = std::move(rule);
  added->max_violations_ = static_cast<uint64_t>(parameters.integer("max_violations"));
  added->finding_.kind = &kind;
  added->finding_.severity = std::min(kind.severity, highest);
  added->highest_ = highest;
  added->finding_.parameters = parameters.to_json();
  added->parameters_ = std::move(parameters);
  evaluations_.push_back(std::move(added));
  ++revision_;
  return {};
}

Runner::Wanted Runner::wanted(const RunView& run, uint32_t tensor) const {
  Wanted out;
  for (const auto& evaluation : evaluations_) {
    if (!evaluation->is_active_) continue;
    for (Selection* selection : evaluation->selections_) {
      if (!selection->holds(run, tensor)) continue;
      out.any = true;
      out.statistics.merge(selection->options().statistics);
      out.context.merge(selection->options().context);
      out.values = out.values || selection->options().values;
    }
  }
  return out;
}

StatisticSet Runner::columns() const {
  StatisticSet out;
  for (const auto& evaluation : evaluations_) {
    for (const Selection* selection : evaluation->selections_) {
      out.merge(selection->options().statistics);
      out.merge(selection->options().context);
    }
  }
  return out;
}

bool Runner::is_active() const {
  return std::ranges::any_of(evaluations_, [](const auto& e) { return e->is_active_; });
}

void Runner::settle(Evaluation& evaluation, const Status& status, Hits& hits) {
  if (!hits.empty()) {
    Hit hit = hits.take(evaluation.kind_->name);
    const Severity severity =
        std::min(hit.severity.value_or(evaluation.kind_->severity), evaluation.highest_);
    if (evaluation.highest_ < Severity::error) hit.severity = severity;
    ++evaluation.hit_count_;
    evaluation.status_ = RuleStatus::issues_found;
    Finding& finding = evaluation.finding_;
    finding.violation_count += hit.violation_count;
    finding.last_step = hit.step;
    for (uint32_t tensor : hit.tensors) {
      Finding::TensorHits& hits_of = evaluation.tensors_[tensor];
      if (hits_of.hits++ > 0) continue;
      hits_of.tensor = run_->tensor(tensor);
      hits_of.first_step = hit.step.step;
    }
    for (uint32_t worker : hit.workers) {
      if (!evaluation.workers_.contains(worker)) evaluation.workers_[worker] = run_->worker(worker);
    }
    if (evaluation.hit_count_ == 1) finding.first_step = hit.step;
    if (evaluation.hit_count_ == 1 || severity > finding.severity) {
      finding.severity = severity;
      finding.first_hit = hit;
    }
    if (options_.on_hit) options_.on_hit(evaluation, hit);
    if (options_.on_fire == OnFire::stop) evaluation.is_active_ = false;
  }
  if (!status.ok()) {
    evaluation.status_ = RuleStatus::error;
    evaluation.error_ = status.error().message;
    evaluation.is_active_ = false;
  }
  if (evaluation.is_active_ && evaluation.rule_->is_done()) evaluation.is_active_ = false;
  if (!evaluation.is_active_) ++revision_;
}

void Runner::observe(const StepView& step) {
  run_ = step.run();
  last_step_ = step.info();
  last_wall_secs_ = step.wall_secs();
  ++step_count_;
  for (const auto& evaluation : evaluations_) {
    if (!evaluation->is_active_) continue;
    Hits hits(step.info(), step.wall_secs(), evaluation->max_violations_);
    const Status status = evaluation->rule_->observe(step, hits);
    settle(*evaluation, status, hits);
  }
}

void Runner::tick(const Progress& progress) {
  for (const auto& evaluation : evaluations_) {
    if (!evaluation->is_active_) continue;
    Hits hits(progress.newest_step.value_or(StepInfo{.step = -1}), 0, evaluation->max_violations_);
    const Status status = evaluation->rule_->tick(progress, hits);
    settle(*evaluation, status, hits);
  }
}

std::optional<double> Runner::tick_secs() const {
  std::optional<double> out;
  for (const auto& evaluation : evaluations_) {
    const auto secs = evaluation->is_active_ ? evaluation->rule_->tick_secs() : std::nullopt;
    if (secs && (!out || *secs < *out)) out = secs;
  }
  return out;
}

void Runner::finish() {
  for (const auto& evaluation : evaluations_) {
    if (evaluation->is_active_ && run_) {
      Hits hits(last_step_, last_wall_secs_, evaluation->max_violations_);
      const Status status = evaluation->rule_->finish(*run_, hits);
      settle(*evaluation, status, hits);
    }
    evaluation->is_active_ = false;
    if (evaluation->status_ == RuleStatus::in_progress) {
      evaluation->status_ = RuleStatus::no_issues_found;
    }
  }
  ++revision_;
}

void Runner::stop() {
  for (const auto& evaluation : evaluations_) {
    evaluation->is_active_ = false;
    if (evaluation->status_ == RuleStatus::in_progress) evaluation->status_ = RuleStatus::stopped;
  }
  ++revision_;
}

std::vector<Finding> Runner::findings() const {
  std::vector<Finding> out;
  for (const auto& evaluation : evaluations_) {
    if (auto finding = evaluation->finding()) out.push_back(std::move(*finding));
  }
  rank(out);
  return out;
}

}  // namespace smd::rules
