// The built-in rules: their table, one rule at work step by step, and the diagnosis of a whole run.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/trial_arg.h"
#include "python/src/values.h"
#include "smd/rules/diagnosis.h"
#include "smd/rules/finding_log.h"
#include "smd/rules/progress_meter.h"
#include "smd/rules/trial_feed.h"

namespace smdebug {
namespace {

namespace rules = smd::rules;

// As the core's `not_found` says when a rule lacks something to look at.
[[noreturn]] void raise_of(const rules::RuleKind& kind, const smd::Error& error) {
  if (error.code != smd::ErrorCode::not_found) raise(error);
  const nb::object exception =
      nb::module_::import_("smdebug.exceptions").attr("InsufficientInformationForRuleInvocation");
  const nb::object raised = exception(std::string(kind.name), to_text(error.message));
  PyErr_SetObject(exception.ptr(), raised.ptr());
  throw nb::python_error();
}

const rules::RuleKind& kind_of(const std::string& name) {
  const auto kind = rules::find_rule(name);
  if (!kind.ok()) raise("SMDebugValueError", kind.error().message);
  return **kind;
}

smd::Json to_json(const rules::ParameterSpec& spec) {
  return {{"name", spec.name},
          {"type", rules::name_of(spec.type)},
          {"default", spec.default_text},
          {"help", spec.help},
          {"range", spec.range},
          {"choices", spec.choices},
          {"aliases", spec.aliases},
          {"is_extension", spec.is_extension}};
}

smd::Json to_json(const rules::RuleKind& kind) {
  smd::Json parameters = smd::Json::array();
  for (const auto& spec : kind.parameters) parameters.push_back(to_json(spec));
  smd::Json collections = smd::Json::array();
  for (const auto& request : kind.collections) {
    smd::Json settings = smd::Json::object();
    for (const auto& setting : request.settings) {
      settings[std::string(setting.name)] = setting.value;
    }
    collections.push_back({{"name", request.collection}, {"parameters", settings}});
  }
  return {{"name", kind.name},
          {"snake_name", rules::snake_name(kind)},
          {"group", rules::name_of(kind.group)},
          {"severity", rules::name_of(kind.severity)},
          {"summary", kind.summary},
          {"sees", kind.sees},
          {"why", kind.why},
          {"fix", kind.fix},
          {"parameters", std::move(parameters)},
          {"collections", std::move(collections)}};
}

nb::object rule_table() {
  smd::Json table = smd::Json::array();
  for (const rules::RuleKind* kind : rules::rule_kinds()) table.push_back(to_json(*kind));
  return to_python(table);
}

nb::object shared_parameters() {
  smd::Json table = smd::Json::array();
  for (const auto& spec : rules::shared_parameters()) table.push_back(to_json(spec));
  return to_python(table);
}

std::vector<std::string> builtin_rules() {
  std::vector<std::string> names;
  for (const rules::RuleKind* kind : rules::rule_kinds()) names.emplace_back(kind->name);
  return names;
}

std::vector<std::shared_ptr<smd::Trial>> to_trials(const std::vector<nb::object>& objects) {
  std::vector<std::shared_ptr<smd::Trial>> trials;
  for (const nb::object& object : objects) trials.push_back(to_trial(object));
  return trials;
}

// One rule on one run. One thread at a time, which Python's lock sees to.
class RuleEvaluator final {
 public:
  RuleEvaluator(const std::string& rule, const nb::object& parameters,
                const std::vector<nb::object>& other_trials)
      : kind_(kind_of(rule)),
        runner_({.on_fire = rules::OnFire::keep_going,
                 .context = {.other_trials = to_trials(other_trials)},
                 .on_hit = [this](const rules::Evaluation& evaluation, const rules::Hit& hit) {
                   hits_.push_back(rules::hit_record(evaluation, hit));
                 }}) {
    const auto added = runner_.add(kind_, smdebug::to_json(parameters, "parameters"));
    if (!added.ok()) raise_of(kind_, added.error());
  }

  nb::object parameters() const { return to_python(evaluation().parameters().to_json()); }

  // What the rule says of the step, and of those that were saved before it since the last call.
  nb::object evaluate(nb::handle trial_object, smd::Step step) {
    auto trial = to_trial(trial_object);
    const uint64_t before = evaluation().datapoints();
    hits_.clear();
    const smd::Status status = [&]() -> smd::Status {
      const nb::gil_scoped_release released;
      if (!feed_) feed_.emplace(trial, rules::TrialFeedOptions{.steps = {.begin = step}});
      return feed_->advance(runner_, step + 1);
    }();
    check(status);
    if (const nb::object hit = last_hit(); !hit.is_none()) return hit;
    if (evaluation().datapoints() == before) return nb::bool_(false);
    return nb::none();
  }

  // What a rule says while no step comes, of the run as the trial knows it.
  nb::object tick(nb::handle trial_object) {
    const auto trial = to_trial(trial_object);
    hits_.clear();
    runner_.tick(meter_.measure(*trial));
    return last_hit();
  }

  std::optional<double> tick_secs() const { return runner_.tick_secs(); }

  // What a rule says once everything was seen.
  nb::object finish() {
    hits_.clear();
    runner_.finish();
    return to_python(smd::Json(hits_));
  }

  std::optional<std::string> missing() const { return evaluation().missing(); }

 private:
  const rules::Evaluation& evaluation() const { return *runner_.evaluations().front(); }

  nb::object last_hit() const {
    if (evaluation().status() == rules::RuleStatus::error) {
      raise("SMDebugRuntimeError", evaluation().error());
    }
    return hits_.empty() ? nb::none() : to_python(hits_.back());
  }

  const rules::RuleKind& kind_;
  std::vector<smd::Json> hits_;
  std::optional<rules::TrialFeed> feed_;
  rules::ProgressMeter meter_{smd::system_clock()};
  rules::Runner runner_;
};

nb::object diagnose(nb::handle trial_object, const std::vector<std::string>& names,
                    const nb::object& parameters, std::optional<smd::Step> start,
                    std::optional<smd::Step> end, const std::vector<nb::object>& other_trials) {
  const auto trial = to_trial(trial_object);
  rules::DiagnosisOptions options{.rules = names,
                                  .steps = {.begin = start.value_or(0), .end = end},
                                  .context = {.other_trials = to_trials(other_trials)}};
  const smd::Json given = smdebug::to_json(parameters, "parameters");
  for (const auto& [rule, values] : given.items()) options.parameters[rule] = values;
  smd::Result<rules::Diagnosis> found = [&] {
    const nb::gil_scoped_release released;
    return rules::diagnose(trial, options);
  }();
  if (!found.ok() && found.error().code == smd::ErrorCode::not_found) {
    raise("SMDebugValueError", found.error().message);
  }
  return to_python(check(std::move(found)).to_json());
}

}  // namespace

void bind_rules(nb::module_& m) {
  m.def("builtin_rules", &builtin_rules, "The names of the built-in rules, sorted.");
  m.def("rule_table", &rule_table, "All that is known of each built-in rule.");
  m.def("shared_rule_parameters", &shared_parameters, "The parameters that every rule has.");
  nb::class_<RuleEvaluator>(m, "RuleEvaluator",
                            "One built-in rule at work on one run, step by step.")
      .def(nb::init<const std::string&, const nb::object&, const std::vector<nb::object>&>(),
           nb::arg("rule"), nb::arg("parameters"),
           nb::arg("other_trials") = std::vector<nb::object>())
      .def_prop_ro("parameters", &RuleEvaluator::parameters,
                   "All of them, with the defaults, as plain values.")
      .def_prop_ro("missing", &RuleEvaluator::missing,
                   "Why nothing could be judged so far; None: something was.")
      .def("evaluate", &RuleEvaluator::evaluate, nb::arg("trial"), nb::arg("step"),
           "The hit at a global step, steps increasing; None: no hit; False: the step held nothing "
           "that the rule can judge.")
      .def("tick", &RuleEvaluator::tick, nb::arg("trial"),
           "The hit of a rule that watches the clock; None: no hit.")
      .def_prop_ro("tick_secs", &RuleEvaluator::tick_secs,
                   "How often tick() is to be called while no step comes; None: never.")
      .def("finish", &RuleEvaluator::finish,
           "Hits that show only when the job has ended; the last call.");
  m.def("diagnose", &diagnose, nb::arg("trial"), nb::arg("rules") = std::vector<std::string>(),
        nb::arg("parameters") = nb::dict(), nb::arg("start_step") = nb::none(),
        nb::arg("end_step") = nb::none(), nb::arg("other_trials") = std::vector<nb::object>(),
        "Everything that the rules say of a run, as `smdebug diagnose --json` prints it.");
}

}  // namespace smdebug
