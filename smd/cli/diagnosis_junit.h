#pragma once

// Diagnoses as a JUnit report, which pipelines show: one suite per run, one case per rule. Pure
// function.

#include <span>
#include <string>

#include "smd/cli/diagnosed_run.h"
#include "smd/cli/rule_arguments.h"

namespace smd::cli {

// Findings that --fail-on names are failures, others are told in the output of their case. Rules
// that had nothing to judge are skipped; a run that cannot be read is one error.
std::string junit_report(std::span<const DiagnosedRun> runs, const RuleArguments& arguments);

}  // namespace smd::cli
