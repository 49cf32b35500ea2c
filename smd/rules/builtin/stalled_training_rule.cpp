#include <fmt/format.h>

#include <algorithm>

#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr double kLongestPollSecs = 15;

struct Options {
  double threshold_secs = 0;
  bool per_worker = false;
  bool stop_training_on_fire = false;
  std::string training_job_name_prefix;
};

class StalledTraining final : public Rule {
 public:
  explicit StalledTraining(Options options) : options_(std::move(options)) {}

  // The clock is all it needs.
  std::vector<Selection*> selections() override { return {}; }
  Status observe(const StepView&, Hits&) override { return {}; }
  std::optional<double> tick_secs() const override {
    return std::min(options_.threshold_secs / 10, kLongestPollSecs);
  }

  Status tick(const Progress& progress, Hits& hits) override {
    has_ticked_ = true;
    if (progress.has_ended) return {};
    // Each silence is reported once: news end it.
    if (!reported_at_ || *reported_at_ != progress.newest_secs) {
      const double age = progress.now_secs - progress.newest_secs;
      if (age >= options_.threshold_secs) {
        reported_at_ = progress.newest_secs;
        report(progress, "", age, hits);
        hits.say(progress.newest_step
                     ? fmt::format("No new step for {:.0f} s; the newest is step {}.", age,
                                   progress.newest_step->step)
                     : fmt::format("No step at all for {:.0f} s.", age));
      }
    }
    if (options_.per_worker) judge_workers(progress, hits);
    return {};
  }

  std::optional<std::string> missing() const override {
    if (has_ticked_) return std::nullopt;
    return "It watches the clock while a run grows, and this run was read at once.";
  }

 private:
  void judge_workers(const Progress& progress, Hits& hits) {
    const bool is_quiet = hits.empty();
    std::vector<std::string> silent;
    for (const auto& [worker, secs] : progress.worker_secs) {
      const auto known = reported_workers_.find(worker);
      if (known != reported_workers_.end() && known->second == secs) continue;
      const double age = progress.now_secs - secs;
      if (age < options_.threshold_secs) continue;
      reported_workers_[worker] = secs;
      silent.push_back(worker);
      report(progress, worker, age, hits);
    }
    if (silent.empty() || !is_quiet) return;
    hits.say(fmt::format(
        "Worker '{}'{} has saved nothing for at least {:.0f} s; the newest step "
        "of the run is {}.",
        silent.front(), silent.size() > 1 ? fmt::format(" and {} more", silent.size() - 1) : "",
        options_.threshold_secs, progress.newest_step ? progress.newest_step->step : -1));
  }

  void report(const Progress& progress, const std::string& worker, double age, Hits& hits) const {
    Violation* hit =
        hits.add("", "silent_secs", age, age > options_.threshold_secs ? Op::above : Op::equal,
                 options_.threshold_secs);
    if (hit == nullptr) return;
    hit->worker = worker;
    Json ages = Json::object();
    for (const auto& [name, secs] : progress.worker_secs) ages[name] = progress.now_secs - secs;
    hit->with("newest_step", Json(progress.newest_step ? progress.newest_step->step : -1))
        .with("worker_ages_secs", std::move(ages));
    if (options_.stop_training_on_fire) {
      hit->with("stop_training_on_fire", Json(true))
          .with("training_job_name_prefix", Json(options_.training_job_name_prefix));
    }
  }

  const Options options_;
  bool has_ticked_ = false;
  std::optional<double> reported_at_;  // newest_secs of the silence that was reported last
  std::map<std::string, double> reported_workers_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "threshold",
     .type = ParameterType::integer,
     .default_text = "1800",
     .help = "Fires when no new step has appeared for so many seconds.",
     .range = "[1,]"},
    {.name = "stop_training_on_fire",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Ask for the job to be stopped, as the action StopTraining does."},
    {.name = "training_job_name_prefix",
     .type = ParameterType::text,
     .default_text = "",
     .help = "How the name of the job to stop begins; not given, the watched one.",
     .aliases = "training_job_prefix"},
    {.name = "per_worker",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Fire also when a single worker is silent while others go on.",
     .is_extension = true},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.threshold_secs = static_cast<double>(parameters.integer("threshold")),
                  .per_worker = parameters.boolean("per_worker"),
                  .stop_training_on_fire = parameters.boolean("stop_training_on_fire")};
  if (parameters.has("training_job_name_prefix")) {
    options.training_job_name_prefix = parameters.text("training_job_name_prefix");
  }
  return make_rule<StalledTraining>(std::move(options));
}

}  // namespace

extern const RuleKind stalled_training_rule;
const RuleKind stalled_training_rule = {
    .name = "StalledTrainingRule",
    .group = RuleGroup::any_framework,
    .severity = Severity::error,
    .summary = "The training has not saved anything new for a long time.",
    .sees =
        "The time since the newest step appeared, while a growing run is followed; fires when "
        "it reaches the threshold and the job has not said that it has ended. Fires again only "
        "after news and another silence.",
    .why =
        "The job hangs or has died: a deadlock between workers, a blocked data loader, a full "
        "disk or a lost machine. It costs as much as one that works.",
    .fix =
        "Look at the job's processes and its log, above all at the worker that is silent "
        "longest (per_worker tells). If the job is fine and just saves rarely, raise the "
        "threshold above the time between two saved steps.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
