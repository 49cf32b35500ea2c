#include "smd/cli/rule_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/cli/selection.h"

namespace smd::cli {
namespace {

constexpr std::string_view kSeverities[] = {"info", "warning", "error", "never"};

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

}  // namespace

void RuleArguments::add_to(CLI::App& options) {
  options.add_option("--rules", rules_, "only these rules; all that make sense")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  add_list(options, "--param", parameters_, "RULE.NAME=VALUE", "a parameter of a rule");
  add_choice(options, "--fail-on", fail_on_, kSeverities,
             "the least severe finding that makes the exit code 1; warning");
}

Result<rules::DiagnosisOptions> RuleArguments::options() const {
  rules::DiagnosisOptions out{.rules = rules_};
  for (const std::string& text : parameters_) {
    SMD_RETURN_IF_ERROR(add_parameter(text, out.parameters));
  }
  rules::Runner trying({});
  SMD_TRY(const auto left_out, rules::add_rules(out, trying));
  (void)left_out;
  return out;
}

bool RuleArguments::fails_on(rules::Severity severity) const {
  const auto least = rules::parse_severity(fail_on_);
  return least.ok() && severity >= *least;  // "never" is none
}

bool RuleArguments::fails_on(const rules::Diagnosis& diagnosis) const {
  return std::ranges::any_of(diagnosis.findings, [&](const rules::Finding& finding) {
    return fails_on(finding.severity);
  });
}

}  // namespace smd::cli
