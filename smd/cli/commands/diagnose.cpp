#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "smd/cli/command.h"
#include "smd/cli/diagnosed_run.h"
#include "smd/cli/diagnosis_html.h"
#include "smd/cli/diagnosis_junit.h"
#include "smd/cli/diagnosis_text.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/output_file.h"
#include "smd/cli/rule_arguments.h"

namespace smd::cli::command_list {
namespace {

class Diagnose final : public Invocation {
 public:
  explicit Diagnose(CLI::App& options) {
    options.add_option("RUN", runs_, "the runs to look at")->required()->type_name("");
    arguments_.add_to(options);
    options.add_option("--html", html_, "also write a page with plots to this file")
        ->type_name("FILE");
    options.add_option("--junit", junit_, "also write a JUnit report to this file")
        ->type_name("FILE");
    options.add_flag("--save", save_, "also save the findings in findings/ of each run");
    options.add_option("--jobs", jobs_, "runs to look at at once; as many as there are processors")
        ->type_name("N")
        ->check(CLI::Range(1, 256));
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto rule_options, arguments_.options());
    const size_t processors = std::max(1u, std::thread::hardware_concurrency());
    const DiagnoseRunsOptions options{.rules = rule_options,
                                      .curves = !html_.empty(),
                                      .save = save_,
                                      .jobs = jobs_.value_or(processors),
                                      .clock = context.clock};
    std::vector<DiagnosedRun> done;
    diagnose_runs(runs_, options, [&](DiagnosedRun one) {
      tell(context, one, done.empty());
      done.push_back(std::move(one));
    });
    if (!context.json && done.size() > 1) print_summary(context.terminal, done);
    bool is_unwell = false;
    ExitCode code = ExitCode::well;
    for (const DiagnosedRun& one : done) {
      is_unwell = is_unwell || one.error || one.unsaved;
      if (!one.error && arguments_.fails_on(one.diagnosis)) code = ExitCode::found;
    }
    if (!html_.empty()) SMD_RETURN_IF_ERROR(write_output_file(html_, html_page(done)));
    if (!junit_.empty()) {
      SMD_RETURN_IF_ERROR(write_output_file(junit_, junit_report(done, arguments_)));
    }
    return is_unwell ? ExitCode::usage : code;
  }

 private:
  static void tell(const Context& context, const DiagnosedRun& one, bool is_first) {
    if (one.error) {
      context.terminal.say(one.error->message);
      if (context.json) {
        write_json(context.terminal.out, {{"run", one.argument}, {"error", one.error->message}});
      }
      return;
    }
    if (one.unsaved) context.terminal.say(one.unsaved->message);
    if (context.json) {
      write_json(context.terminal.out, one.diagnosis.to_json());
      return;
    }
    if (!is_first) context.terminal.out << '\n';
    print_diagnosis(context.terminal, one.diagnosis);
    context.terminal.out << std::flush;
  }

  std::vector<std::string> runs_;
  RuleArguments arguments_;
  std::string html_;
  std::string junit_;
  bool save_ = false;
  std::optional<size_t> jobs_;
};

constexpr Example kExamples[] = {
    {"diagnose runs/first", "tell what is wrong with a run"},
    {"diagnose runs/first --rules VanishingGradient,ExplodingTensor", "ask two rules only"},
    {"diagnose runs/first --param LossNotDecreasing.num_steps=100", "with other parameters"},
    {"diagnose runs/* --html report.html", "many runs, with a table and a page with plots"},
    {"diagnose runs/a runs/b --json", "one document per run, for programs"},
    {"diagnose runs/first --fail-on error --junit report.xml",
     "in a pipeline that accepts warnings"},
};

}  // namespace

extern const Command diagnose;
const Command diagnose = {
    .name = "diagnose",
    .summary = "Finds what is wrong with training runs",
    .details =
        "Evaluates the built-in rules on all steps that were recorded so far, in one pass. The "
        "probable cause comes first, then what follows from it, with the first step, the tensors, "
        "why it matters and what to do. Rules whose tensors were not saved are named with what "
        "they need. Names of rules may be written in any case, with or without underscores. The "
        "exit code is 1 if a finding is at least as severe as --fail-on says. It is 2 if a run "
        "cannot be read; the others are looked at all the same.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Diagnose>(options);
    },
};

}  // namespace smd::cli::command_list
