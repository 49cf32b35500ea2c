#pragma once

// The options of commands that evaluate rules: which rules, their parameters, and what makes the
// exit code 1. One thread at a time.

#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/cli/options.h"
#include "smd/rules/diagnosis.h"

namespace smd::cli {

class RuleArguments final {
 public:
  // Adds --rules, --param and --fail-on; they write to this object.
  void add_to(CLI::App& options);

  // Wrong names and parameters are told here, before any run is looked at.
  Result<rules::DiagnosisOptions> options() const;
  // Whether a finding of that severity makes the exit code 1.
  bool fails_on(rules::Severity severity) const;
  bool fails_on(const rules::Diagnosis& diagnosis) const;

 private:
  std::vector<std::string> rules_;
  std::vector<std::string> parameters_;
  std::string fail_on_ = "warning";
};

}  // namespace smd::cli
