#include "smd/trial/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "smd/collection/collection_set.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/packed_file_name.h"
#include "smd/trial/internal/event_file.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

using format::Index;
using internal::EventFile;
using storage::FileInfo;

constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kCollectionsEnd = "_collections.json";
// Larger ones are not what they seem, and reading them would take more memory than anybody has.

constexpr std::array<std::string_view, 17> kFaultNames = {"link",
                                                          "file_name",
                                                          "temporary_file",
                                                          "index_unreadable",
                                                          "event_file_outside",
                                                          "event_file_missing",
                                                          "event_file_unindexed",
                                                          "record_outside",
                                                          "record_broken",
                                                          "name_differs",
                                                          "payload_differs",
                                                          "tensor_unreadable",
                                                          "bytes_unindexed",
                                                          "collections_missing",
                                                          "collections_unreadable",
                                                          "workers_differ",
                                                          "end_marker_missing"};

// Faults of an index that its event file can put right.
bool is_mendable(RunFault fault) {
  switch (fault) {
    case RunFault::index_unreadable:
    case RunFault::event_file_outside:
    case RunFault::event_file_missing:
    case RunFault::record_outside:
    case RunFault::record_broken:
    case RunFault::name_differs: return true;
    default: return false;
  }
}

std::string event_file_of(const format::IndexFileName& name) {
  return format::event_file_name(name.step, worker_to_file_name(name.worker));
}

class Verification final {
 public:
  Verification(storage::Storage& storage, const VerifyOptions& options)
      : storage_(storage), options_(options) {}

  Result<VerifyReport> run() {
    SMD_TRY(auto files, storage_.list("", ""));
    for (FileInfo& file : files) sort_in(std::move(file));
    report_.ended = ended_;
    report_.index_files = indexes_.size();
    report_.event_files = events_.size();
    report_.collections_files = collections_.size();
    for (const auto& [path, size] : events_) report_.event_bytes += static_cast<uint64_t>(size);

    check_collections();
    for (const FileInfo& file : indexes_) {
      const auto name = format::parse_step_file_name(file.path);
      if (!name) {
        add({.fault = RunFault::file_name,
             .is_damage = false,
             .file = file.path,
             .message = "This is not the name of an index, so that readers pass it over."});
        continue;
      }
      steps_.insert(name->step);
      workers_.insert(name->worker);
      newest_[name->worker] = std::max(newest_[name->worker], name->step);
      check_index_file(file, *name);
    }
    check_unindexed();
    check_workers();
    if (!ended_) {
      add({.fault = RunFault::end_marker_missing,
           .is_damage = false,
           .message = fmt::format("There is no {}: the job still runs, or was stopped.",
                                  format::kEndMarker)});
    }
    report_.steps = steps_.size();
    report_.workers = workers_.size();
    std::stable_sort(report_.problems.begin(), report_.problems.end(),
                     [](const RunProblem& a, const RunProblem& b) { return a.file < b.file; });
    return std::move(report_);
  }

 private:
  struct IndexCheck {
    std::vector<RunProblem> problems;
    std::optional<Index> index;  // if it could be read
    uint64_t tensors = 0;
    uint64_t payloads_checked = 0;
  };

  void add(RunProblem problem) {
    if (report_.problems.size() < kMostProblems) {
      report_.problems.push_back(std::move(problem));
    } else {
      ++report_.problems_not_listed;
      if (problem.is_damage && !problem.mended) ++report_.damage_not_listed;
    }
  }

  // Puts a file to its kind; files of other programs are none of our business.
  void sort_in(FileInfo file) {
    const std::string_view path = file.path;
    const auto below = [&](std::string_view folder) {
      return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
    };
    const bool ours = below("index") || below("events") || below("collections");
    if (path == format::kEndMarker) {
      ended_ = true;
    } else if (path == "index" || path == "events" || path == "collections") {
      add({.fault = RunFault::link,
           .file = file.path,
           .message = "This is a link where a folder is expected; it is not followed."});
    } else if (ours && path.ends_with(kTemporary)) {
      temporary_.push_back(std::move(file));
    } else if (below("index") && (path.ends_with(".json") || path.ends_with(".csv"))) {
      indexes_.push_back(std::move(file));
    } else if (below("events") && path.ends_with(".tfevents")) {
      events_.emplace(file.path, file.size_bytes);
    } else if (below("collections") && path.ends_with(kCollectionsEnd)) {
      collections_.push_back(std::move(file));
    } else if (ours && !storage_.stat(path).ok()) {
      add({.fault = RunFault::link,
           .file = file.path,
           .message = storage_.stat(path).error().message});
    }
  }

  Result<std::string> read_json(const FileInfo& file) {
    SMD_TRY(const Bytes bytes, storage::read_all(storage_, file.path, storage::kMostJsonBytes));
    return std::string(as_text(bytes));
  }

  void check_collections() {
    for (const FileInfo& file : collections_) {
      std::string_view worker = std::string_view(file.path).substr(file.path.rfind('/') + 1);
      worker.remove_suffix(kCollectionsEnd.size());
      announced_.insert(worker_from_file_name(worker));
      const auto text = read_json(file);
      auto set =
          text.ok() ? CollectionSet::from_json(*text, "") : Result<CollectionSet>(text.error());
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
           .is_damage = ended_ || !indexes_.empty(),
           .message = "There is no collections file, and no reader opens a run without one."});
    }
  }

  IndexCheck check_index(const FileInfo& file) {
    IndexCheck check;
    const auto wrong = [&](RunFault fault, std::string message) {
      check.problems.push_back({.fault = fault, .file = file.path, .message = std::move(message)});
    };
    const auto text = read_json(file);
    auto index = text.ok() ? format::parse_index(*text, file.path) : Result<Index>(text.error());
    if (!index.ok()) {
      wrong(RunFault::index_unreadable, index.error().message);
      return check;
    }
    check.index = std::move(*index);
    const std::string& path = check.index->event_file;
    if (path.empty()) return check;
    if (!storage::check_path(path).ok()) {
      wrong(RunFault::event_file_outside,
            fmt::format("The index names '{}', which is not a path inside of the run.", path));
      return check;
    }
    named_.insert(path);
    auto events = EventFile::open(storage_, path);
    if (!events.ok()) {
      const bool missing = events.error().code == ErrorCode::not_found;
      wrong(missing ? RunFault::event_file_missing : RunFault::event_file_outside,
            missing ? fmt::format("The index names '{}', which is not there.", path)
                    : events.error().message);
      return check;
    }
    for (const auto& location : check.index->tensors) {
      auto result = events->check(location, options_.deep);
      ++check.tensors;
      if (result.had_checksum) ++check.payloads_checked;
      if (result.problem) check.problems.push_back(std::move(*result.problem));
      tell(location.length);
    }
    if (check.problems.empty()) check_gaps(*check.index, events->size_bytes(), check);
    return check;
  }

  // Bytes that no entry covers; nobody reads them.
  static void check_gaps(const Index& index, uint64_t size, IndexCheck& check) {
    std::vector<std::pair<uint64_t, uint64_t>> places;
    for (const auto& location : index.tensors) {
      places.emplace_back(location.offset, location.offset + location.length);
    }
    std::sort(places.begin(), places.end());
    uint64_t covered = 0;
    uint64_t end = 0;
    for (const auto& [from, to] : places) {
      if (to <= end) continue;
      covered += to - std::max(from, end);
      end = to;
    }
    if (covered == size) return;
    check.problems.push_back(
        {.fault = RunFault::bytes_unindexed,
         .is_damage = false,
         .file = index.event_file,
         .message = fmt::format("{} of {} bytes belong to no tensor of the index.", size - covered,
                                size)});
  }

  void check_index_file(const FileInfo& file, const format::IndexFileName& name) {
    IndexCheck check = check_index(file);
    report_.tensors += check.tensors;
    report_.payloads_checked += check.payloads_checked;
    const bool mendable =
        std::any_of(check.problems.begin(), check.problems.end(),
                    [](const RunProblem& problem) { return is_mendable(problem.fault); });
    // The file that a broken index should name is not without an index.
    if (mendable) named_.insert(event_file_of(name));
    if (options_.repair && mendable) repair_index(file, name, check);
    for (RunProblem& problem : check.problems) add(std::move(problem));
  }

  // An index that cannot be read is replaced by whatever its event file still holds; one that can
  // be read only if the event file is whole, as it may know more than is left of the file.
  void repair_index(const FileInfo& file, const format::IndexFileName& name, IndexCheck& check) {
    const std::string path = event_file_of(name);
    if (!events_.contains(path)) return;
    auto events = EventFile::open(storage_, path);
    if (!events.ok()) return;
    const auto scan = events->scan();
    if (check.index && !scan.is_complete()) return;
    static const std::vector<format::ShapeEntry> kNone;
    if (!publish(file.path, path, scan, check.index ? check.index->shapes : kNone,
                 storage::Put::always)) {
      return;
    }
    const auto info = storage_.stat(file.path);
    if (!info.ok()) return;
    IndexCheck again = check_index(*info);
    const bool clean = std::none_of(again.problems.begin(), again.problems.end(),
                                    [](const RunProblem& problem) { return problem.is_damage; });
    for (RunProblem& problem : check.problems) problem.mended = clean && scan.is_complete();
  }

  // Writes an index of what the scan found; false: there was nothing, or it could not be written.
  bool publish(const std::string& index_file, const std::string& event_file,
               const EventFile::Scan& scan, const std::vector<format::ShapeEntry>& shapes,
               storage::Put when) {
    if (scan.tensors.empty()) return false;
    format::IndexBuilder builder;
    for (const auto& at : scan.tensors) builder.add_tensor(at.name, at.offset, at.length);
    for (const auto& shape : shapes) {
      builder.add_shape(shape.name, shape.original_name, shape.shape);
    }
    const std::string text = builder.finish(*scan.step, event_file);
    const auto written = storage_.put(index_file, as_bytes(text), when, {.durable = true});
    if (!written.ok()) {
      add({.fault = RunFault::index_unreadable,
           .file = index_file,
           .message = "The index could not be written: " + written.error().message});
      return false;
    }
    if (!*written) return false;
    std::string message = fmt::format("Rebuilt from the event file with {} tensor{} of {} step {}.",
                                      scan.tensors.size(), scan.tensors.size() == 1 ? "" : "s",
                                      name_of(scan.step->mode), scan.step->mode_step);
    if (scan.stopped_by) {
      message +=
          fmt::format(" What follows offset {} is lost: {}", scan.end, scan.stopped_by->message);
    }
    if (scan.left_out > 0) {
      message += fmt::format(" {} records could not be read and are left out.", scan.left_out);
    }
    if (shapes.empty()) message += " Shapes that were saved without values cannot be rebuilt.";
    report_.repairs.push_back({index_file, std::move(message)});
    return true;
  }

  void check_unindexed() {
    for (const auto& [path, size] : events_) {
      if (named_.contains(path)) continue;
      const auto name = format::parse_step_file_name(path);
      // The newest file of a job that runs may get its index any moment.
      const bool late =
          name && newest_.contains(name->worker) && name->step < newest_[name->worker];
      RunProblem problem{.fault = RunFault::event_file_unindexed,
                         .is_damage = ended_ || late,
                         .file = path,
                         .message =
                             "No index names this event file, so that readers do not see "
                             "it."};
      auto events = EventFile::open(storage_, path);
      if (!events.ok()) {
        problem.message = events.error().message;
        problem.is_damage = true;
      } else if (const auto scan = events->scan(); scan.stopped_by) {
        problem.offset = scan.end;
        problem.message += " " + scan.stopped_by->message;
        repair_unindexed(path, name, scan, problem);
      } else {
        repair_unindexed(path, name, scan, problem);
      }
      tell(static_cast<uint64_t>(size));
      add(std::move(problem));
    }
    for (const FileInfo& file : temporary_) {
      add({.fault = RunFault::temporary_file,
           .is_damage = ended_,
           .file = file.path,
           .message = ended_ ? "A writer that was stopped left this behind; its step is lost."
                             : "This is being written, or a writer that was stopped left it "
                               "behind."});
    }
  }

  void repair_unindexed(const std::string& path, const std::optional<format::IndexFileName>& name,
                        const EventFile::Scan& scan, RunProblem& problem) {
    if (!options_.repair || !name) return;
    const std::string index_file =
        format::index_file_name(name->step, worker_to_file_name(name->worker));
    if (!publish(index_file, path, scan, {}, storage::Put::if_absent)) return;
    const auto info = storage_.stat(index_file);
    problem.mended = info.ok() && check_index(*info).problems.empty() && scan.is_complete();
    steps_.insert(name->step);
    workers_.insert(name->worker);
    ++report_.index_files;
    report_.tensors += scan.tensors.size();
  }

  void check_workers() {
    const auto differs = [&](std::string message) {
      add({.fault = RunFault::workers_differ, .is_damage = ended_, .message = std::move(message)});
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

  void tell(uint64_t bytes) {
    // Lengths come from index files, which may say anything.
    done_bytes_ += std::min(bytes, report_.event_bytes - done_bytes_);
    if (options_.progress) options_.progress(done_bytes_, report_.event_bytes);
  }

  storage::Storage& storage_;
  const VerifyOptions& options_;
  VerifyReport report_;
  bool ended_ = false;
  std::vector<FileInfo> indexes_;
  std::vector<FileInfo> collections_;
  std::vector<FileInfo> temporary_;
  std::map<std::string, int64_t> events_;  // sizes by path
  std::set<std::string> named_;            // event files that an index names
  std::set<std::string> announced_;        // workers with a collections file
  std::set<std::string> workers_;          // workers that wrote steps
  std::set<Step> steps_;
  std::map<std::string, Step> newest_;  // by worker
  std::optional<int64_t> num_workers_;
  uint64_t done_bytes_ = 0;
};

}  // namespace

std::string_view name_of(RunFault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

uint64_t VerifyReport::damage() const {
  uint64_t count = damage_not_listed;
  for (const RunProblem& problem : problems) {
    if (problem.is_damage && !problem.mended) ++count;
  }
  return count;
}

Result<VerifyReport> verify_run(storage::Storage& storage, const VerifyOptions& options) {
  // Object stores hold no packed runs.
  if (!storage.is_remote()) {
    SMD_TRY(const auto packed, storage.list(format::kPackedFolder, ""));
    if (!packed.empty()) {
      return Error{ErrorCode::unsupported,
                   fmt::format("The run is in the packed layout, which cannot be verified yet; "
                               "trials that are opened with check=True compare the checksums of "
                               "what they read: {}",
                               storage.name())};
    }
  }
  return Verification(storage, options).run();
}

}  // namespace smd
