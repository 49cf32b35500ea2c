#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/diagnosis_text.h"
#include "smd/cli/interruption.h"
#include "smd/cli/json_output.h"
#include "smd/cli/rule_arguments.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/rules/finding_log.h"
#include "smd/rules/hit_news.h"
#include "smd/rules/run_follower.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kStop = "stop";
constexpr std::string_view kOnFire[] = {kStop, "continue"};

class Watch final : public Invocation {
 public:
  explicit Watch(CLI::App& options) {
    add_run(options, run_);
    arguments_.add_to(options);
    add_choice(options, "--on-fire", on_fire_, kOnFire,
               "what a rule does after its first hit: stop, or continue with the next step; stop");
    options
        .add_option("--interval", interval_secs_,
                    "look at least every so many seconds; 5, and more often if a rule that "
                    "watches the clock asks for it")
        ->type_name("SECS")
        ->check(CLI::Range(0.01, 86400.0));
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto options, arguments_.options());
    SMD_RETURN_IF_ERROR(check_harmless(options));
    std::string note;
    SMD_TRY(std::shared_ptr<storage::Storage> storage, open_future_run(run_, note));
    if (!note.empty()) context.terminal.say(note);
    SMD_TRY(auto opened, Trial::open(storage, {.end_delay_secs = 0}));
    const std::shared_ptr<Trial> trial = std::move(opened);

    rules::FindingLog log(storage, {.writer = "watch", .clock = context.clock});
    rules::HitNews news;
    rules::Runner runner(
        {.on_fire = on_fire_ == kStop ? rules::OnFire::stop : rules::OnFire::keep_going,
         .context = options.context,
         .on_hit = [&](const rules::Evaluation& evaluation, const rules::Hit& hit) {
           if (!news.is_news(hit)) return;
           // Saved first: whoever is told finds it in the file.
           warn_once(context, log.add(evaluation, hit));
           tell(context, evaluation, hit);
         }});
    SMD_TRY(auto left_out, rules::add_rules(options, runner));
    rules::RunFollower follower(trial, runner, context.clock);
    const Interruption interruption;
    std::optional<Error> problem;
    for (;;) {
      const auto is_over = follower.poll();
      if (!is_over.ok()) problem = is_over.error();
      if (problem || *is_over || interruption.has_come()) break;
      trial->wait(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(
                          std::min(interval_secs_, runner.tick_secs().value_or(interval_secs_)))));
      if (interruption.has_come()) break;
    }
    const bool is_broken_off = interruption.has_come();
    if (is_broken_off || problem) runner.stop();
    const rules::Diagnosis diagnosis =
        rules::conclude(trial->name(), runner, follower.feed(), std::move(left_out));
    // A run that never began gets no folder.
    if (diagnosis.step_count > 0 || !diagnosis.findings.empty()) {
      warn_once(context, log.finish(diagnosis));
    }
    if (context.json) {
      Json document = {{"kind", "diagnosis"}};
      document.update(diagnosis.to_json());
      write_json(context.terminal.out, document);
    } else {
      print_diagnosis(context.terminal, diagnosis);
    }
    if (problem) return *problem;
    if (is_broken_off) return ExitCode::interrupted;
    return arguments_.fails_on(diagnosis) ? ExitCode::found : ExitCode::well;
  }

 private:
  // This command tells and does not act.
  static Status check_harmless(const rules::DiagnosisOptions& options) {
    constexpr std::string_view kSwitch = "stop_training_on_fire";
    for (const auto& [name, given] : options.parameters) {
      SMD_TRY(const rules::RuleKind* kind, rules::find_rule(name));
      const bool has_switch = std::ranges::any_of(
          kind->parameters, [&](const rules::ParameterSpec& spec) { return spec.name == kSwitch; });
      if (!has_switch) continue;
      SMD_TRY(const auto parsed, rules::Parameters::parse(kind->name, kind->parameters, given));
      if (!parsed.boolean(kSwitch)) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} of {} needs somebody who can stop the training: give the rule "
                               "to the hook of the training, or evaluate it in Python.",
                               kSwitch, kind->name)};
    }
    return {};
  }

  // Whoever may not write beside the run may watch it all the same.
  void warn_once(const Context& context, const Status& saved) {
    if (saved.ok() || std::exchange(has_warned_, true)) return;
    context.terminal.say(
        fmt::format("Findings cannot be saved beside the run: {}", saved.error().message));
  }

  static void tell(const Context& context, const rules::Evaluation& evaluation,
                   const rules::Hit& hit) {
    const rules::Severity severity = hit.severity.value_or(evaluation.kind().severity);
    if (context.json) {
      write_json(context.terminal.out, rules::hit_record(evaluation, hit));
      return;
    }
    print_hit(context.terminal, severity, hit);
  }

  std::string run_;
  RuleArguments arguments_;
  std::string on_fire_ = std::string(kStop);
  double interval_secs_ = 5;
  bool has_warned_ = false;
};

constexpr Example kExamples[] = {
    {"watch runs/first", "tell of each problem as it appears, until the job ends"},
    {"watch s3://bucket/runs/first --rules ExplodingTensor", "one rule, on a run in a bucket"},
    {"watch runs/first --on-fire continue --json", "further hits, too; one document per line"},
};

}  // namespace

extern const Command watch;
const Command watch = {
    .name = "watch",
    .summary = "Follows a run and tells what is wrong as it happens",
    .details =
        "Evaluates the built-in rules on a run while it grows. A hit is printed when its rule "
        "names a tensor or a worker for the first time, and at its tenth, hundredth and so on; the "
        "same lines are saved in findings/ of the run. When the job has ended, or every rule has "
        "had its first hit, all findings are listed as diagnose does it, with the same exit codes. "
        "The run need not have begun. Ctrl-C ends the command with what was found so far; the exit "
        "code is 130 then.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Watch>(options);
    },
};

}  // namespace smd::cli::command_list
