#include "smd/trial/internal/run_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/collection/collection_set.h"
#include "smd/format/file_name.h"
#include "smd/types/worker.h"

namespace smd::internal {
namespace {

constexpr std::string_view kCollections = "collections/";
constexpr std::string_view kCollectionsEnd = "_collections.json";

}  // namespace

bool RunCheck::take(const storage::FileInfo& file) {
  const std::string_view path = file.path;
  if (path == format::kEndMarker) {
    report.ended = true;
  } else if (path == format::kRepackMark) {
    copy_incomplete_ = true;
  } else if (path.starts_with(kCollections) && path.ends_with(kCollectionsEnd)) {
    collections_.push_back(file);
    ++report.collections_files;
  } else {
    return false;
  }
  return true;
}

void RunCheck::add(RunProblem problem) {
  if (report.problems.size() < kMostProblems) {
    report.problems.push_back(std::move(problem));
  } else {
    ++report.problems_not_listed;
    if (problem.is_damage && !problem.mended) ++report.damage_not_listed;
  }
}

void RunCheck::tell(uint64_t bytes) {
  // Lengths come from files that may say anything.
  done_bytes_ += std::min(bytes, report.event_bytes - done_bytes_);
  if (options_.progress) options_.progress(done_bytes_, report.event_bytes);
}

void RunCheck::check_collections(bool has_steps) {
  for (const storage::FileInfo& file : collections_) {
    std::string_view worker = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    worker.remove_suffix(kCollectionsEnd.size());
    announced_.insert(worker_from_file_name(worker));
    const auto text = storage::read_all(storage_, file.path, storage::kMostJsonBytes);
    auto set = text.ok() ? CollectionSet::from_json(std::string(as_text(*text)), "")
                         : Result<CollectionSet>(text.error());
    if (!set.ok()) {
      add({.fault = RunFault::collections_unreadable,
           .file = file.path,
           .message = set.error().message});
      continue;
    }
    if (num_workers_ && *num_workers_ != set->num_workers()) {
      add({.fault = RunFault::workers_differ,
           .file = file.path,
           .message = fmt::format("This file announces {} workers, another one {}.",
                                  set->num_workers(), *num_workers_)});
    }
    num_workers_ = set->num_workers();
  }
  if (collections_.empty()) {
    add({.fault = RunFault::collections_missing,
         .is_damage = ended() || has_steps,
         .message = "There is no collections file, and no reader opens a run without one."});
  }
}

void RunCheck::check_workers() {
  const auto differs = [&](std::string message) {
    add({.fault = RunFault::workers_differ, .is_damage = ended(), .message = std::move(message)});
  };
  if (num_workers_ && static_cast<int64_t>(announced_.size()) != *num_workers_) {
    differs(fmt::format("{} workers are announced, but there are {} collections files.",
                        *num_workers_, announced_.size()));
  }
  if (workers_.empty()) return;
  for (const std::string& worker : workers_) {
    if (!announced_.empty() && !announced_.contains(worker)) {
      differs(fmt::format("The worker '{}' wrote steps but has no collections file.", worker));
    }
  }
  if (num_workers_ && static_cast<int64_t>(workers_.size()) != *num_workers_) {
    differs(fmt::format("{} workers are announced, but {} wrote steps: {}.", *num_workers_,
                        workers_.size(), fmt::join(workers_, ", ")));
  }
}

VerifyReport RunCheck::finish() {
  check_workers();
  if (copy_incomplete_) {
    add({.fault = RunFault::copy_incomplete,
         .file = std::string(format::kRepackMark),
         .message = "This is a part of a copy of another run: repack is still running, or was "
                    "interrupted."});
  } else if (!ended()) {
    add({.fault = RunFault::end_marker_missing,
         .is_damage = false,
         .message = fmt::format("There is no {}: the job still runs, or was stopped.",
                                format::kEndMarker)});
  }
  report.steps = steps_.size();
  report.workers = workers_.size();
  std::stable_sort(report.problems.begin(), report.problems.end(),
                   [](const RunProblem& a, const RunProblem& b) { return a.file < b.file; });
  return std::move(report);
}

}  // namespace smd::internal
