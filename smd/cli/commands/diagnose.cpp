#include "smd/rules/diagnosis.h"

#include <fmt/format.h>

#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/diagnosis_text.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kNever = "never";
constexpr std::string_view kSeverities[] = {"info", "warning", "error", kNever};

// "Rule.key=value" to the parameters of its rule.
Status add_parameter(const std::string& text, std::map<std::string, Json>& parameters) {
  const size_t dot = text.find('.');
  const size_t equals = text.find('=');
  if (dot == std::string::npos || equals == std::string::npos || dot > equals || dot == 0 ||
      equals == dot + 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is not a parameter; write RULE.NAME=VALUE, as in "
                             "VanishingGradient.threshold=1e-6.",
                             text)};
  }
  SMD_TRY(const rules::RuleKind* kind, rules::find_rule(text.substr(0, dot)));
  parameters[std::string(kind->name)][text.substr(dot + 1, equals - dot - 1)] =
      text.substr(equals + 1);
  return {};
}

class Diagnose final : public Invocation {
 public:
  explicit Diagnose(CLI::App& options) {
    options.add_option("RUN", runs_, "the runs to look at")->required()->type_name("");
    options.add_option("--rules", rules_, "only these rules; all that make sense")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME,…");
    add_list(options, "--param", parameters_, "RULE.NAME=VALUE", "a parameter of a rule");
    add_choice(options, "--fail-on", fail_on_, kSeverities,
               "the least severe finding that makes the exit code 1; warning");
  }

  Result<ExitCode> run(const Context& context) override {
    rules::DiagnosisOptions options{.rules = rules_};
    for (const std::string& text : parameters_) {
      SMD_RETURN_IF_ERROR(add_parameter(text, options.parameters));
    }
    ExitCode code = ExitCode::well;
    bool is_first = true;
    for (const std::string& run : runs_) {
      SMD_TRY(std::shared_ptr<Trial> trial, open_trial(run));
      SMD_TRY(const rules::Diagnosis diagnosis, rules::diagnose(trial, options));
      if (context.json) {
        write_json(context.terminal.out, diagnosis.to_json());
      } else {
        if (!is_first) context.terminal.out << '\n';
        print_diagnosis(context.terminal, diagnosis);
      }
      is_first = false;
      if (fail_on_ == kNever) continue;
      SMD_TRY(const rules::Severity least, rules::parse_severity(fail_on_));
      if (diagnosis.has_finding(least)) code = ExitCode::found;
    }
    return code;
  }

 private:
  std::vector<std::string> runs_;
  std::vector<std::string> rules_;
  std::vector<std::string> parameters_;
  std::string fail_on_ = "warning";
};

constexpr Example kExamples[] = {
    {"diagnose runs/first", "tell what is wrong with a run"},
    {"diagnose runs/first --rules VanishingGradient,ExplodingTensor", "ask two rules only"},
    {"diagnose runs/first --param LossNotDecreasing.num_steps=100", "with other parameters"},
    {"diagnose runs/a runs/b --json", "one document per run, for programs"},
    {"diagnose runs/first --fail-on error", "accept warnings in a pipeline"},
};

}  // namespace

extern const Command diagnose;
const Command diagnose = {
    .name = "diagnose",
    .summary = "Finds what is wrong with a training run",
    .details =
        "Evaluates the built-in rules on all steps that were recorded so far, in one pass, and "
        "lists what they found: the most severe first, with the first step, the tensors, why it "
        "matters and what to do. Rules whose tensors were not saved are named with what they "
        "need. Names of rules may be written in any case, with or without underscores. The exit "
        "code is 1 if a finding is at least as severe as --fail-on says.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Diagnose>(options);
    },
};

}  // namespace smd::cli::command_list
