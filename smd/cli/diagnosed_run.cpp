#include "smd/cli/diagnosed_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "smd/cli/run_argument.h"
#include "smd/rules/finding_log.h"

namespace smd::cli {
namespace {

DiagnosedRun diagnose_run(const std::string& argument, const DiagnoseRunsOptions& options) {
  DiagnosedRun out{.argument = argument};
  auto opened = open_trial(argument);
  if (!opened.ok()) {
    out.error = opened.error();
    return out;
  }
  const std::shared_ptr<Trial> trial = std::move(*opened);
  auto diagnosis = rules::diagnose(trial, options.rules);
  if (!diagnosis.ok()) {
    out.error = diagnosis.error();
    return out;
  }
  out.diagnosis = std::move(*diagnosis);
  if (options.save) {
    const Status saved = rules::save_diagnosis(trial->storage(), out.diagnosis, *options.clock);
    if (!saved.ok()) out.unsaved = saved.error();
  }
  if (options.curves) {
    out.loss = loss_curve(*trial);
    for (const rules::Finding& finding : out.diagnosis.findings) {
      out.curves.push_back(curve_of(*trial, finding));
    }
  }
  return out;
}

}  // namespace

void diagnose_runs(std::span<const std::string> arguments, const DiagnoseRunsOptions& options,
                   const std::function<void(DiagnosedRun)>& told) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<DiagnosedRun>> done(arguments.size());  // guarded by mutex
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < arguments.size(); i = next++) {
      DiagnosedRun run = diagnose_run(arguments[i], options);
      {
        const std::lock_guard lock(mutex);
        done[i] = std::move(run);
      }
      changed.notify_one();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(options.jobs, arguments.size()); ++i) threads.emplace_back(work);
  for (std::optional<DiagnosedRun>& one : done) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return one.has_value(); });
    DiagnosedRun run = std::move(*one);
    lock.unlock();
    told(std::move(run));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace smd::cli
