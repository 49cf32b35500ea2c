#pragma once

// The runs that `smdebug diagnose` was asked about, each with what came of it, and the work itself
// on several threads.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/cli/curve.h"
#include "smd/rules/diagnosis.h"

namespace smd::cli {

struct DiagnosedRun {
  std::string argument;          // as it was typed
  std::optional<Error> error;    // it is no run, or cannot be read
  rules::Diagnosis diagnosis;    // without an error
  std::optional<Error> unsaved;  // the findings should have been saved beside the run and were not
  std::optional<Curve> loss;
  std::vector<std::optional<Curve>> curves;  // of the findings, if they were wanted

  const std::string& name() const { return error ? argument : diagnosis.run; }
};

struct DiagnoseRunsOptions {
  rules::DiagnosisOptions rules{};
  bool curves = false;
  bool save = false;  // beside each run
  size_t jobs = 1;    // threads
  std::shared_ptr<const Clock> clock = system_clock();
};

// Calls `told` for each run in the order of the arguments, as soon as those before it were told; on
// the calling thread. What it is told does not depend on the number of jobs.
void diagnose_runs(std::span<const std::string> arguments, const DiagnoseRunsOptions& options,
                   const std::function<void(DiagnosedRun)>& told);

}  // namespace smd::cli
