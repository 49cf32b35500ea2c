#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/storage/temporary.h"
#include "smd/trial/internal/event_file.h"
#include "smd/trial/internal/run_check.h"
#include "smd/types/worker.h"

namespace smd::internal {
namespace {

using format::Index;
using storage::FileInfo;

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

class OriginalVerification final {
 public:
  OriginalVerification(storage::Storage& storage, const VerifyOptions& options)
      : storage_(storage), options_(options), check_(storage, options) {}

  Result<VerifyReport> run() {
    SMD_TRY(auto files, storage_.list("", ""));
    for (FileInfo& file : files) sort_in(std::move(file));
    report_.index_files = indexes_.size();
    report_.event_files = events_.size();
    for (const auto& [path, size] : events_) report_.event_bytes += static_cast<uint64_t>(size);

    check_.check_collections(!indexes_.empty());
    for (const FileInfo& file : indexes_) {
      const auto name = format::parse_step_file_name(file.path);
      if (!name) {
        add({.fault = RunFault::file_name,
             .is_damage = false,
             .file = file.path,
             .message = "This is not the name of an index, so that readers pass it over."});
        continue;
      }
      check_.saw(name->step, name->worker);
      newest_[name->worker] = std::max(newest_[name->worker], name->step);
      check_index_file(file, *name);
    }
    check_unindexed();
    return check_.finish();
  }

 private:
  struct IndexCheck {
    std::vector<RunProblem> problems;
    std::optional<Index> index;  // if it could be read
    uint64_t tensors = 0;
    uint64_t payloads_checked = 0;
  };

  void add(RunProblem problem) { check_.add(std::move(problem)); }

  // Puts a file to its kind; files of other programs are none of our business.
  void sort_in(FileInfo file) {
    const std::string_view path = file.path;
    const auto below = [&](std::string_view folder) {
      return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
    };
    const bool ours = below("index") || below("events") || below("collections");
    if (check_.take(file)) return;
    if (path == "index" || path == "events" || path == "collections") {
      add({.fault = RunFault::link,
           .file = file.path,
           .message = "This is a link where a folder is expected; it is not followed."});
    } else if (ours && storage::is_temporary(path)) {
      temporary_.push_back(std::move(file));
    } else if (below("index") && (path.ends_with(".json") || path.ends_with(".csv"))) {
      indexes_.push_back(std::move(file));
    } else if (below("events") && path.ends_with(".tfevents")) {
      events_.emplace(file.path, file.size_bytes);
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
                         .is_damage = check_.ended() || late,
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
           .is_damage = check_.ended(),
           .file = file.path,
           .message = check_.ended()
                          ? "A writer that was stopped left this behind; its step is lost."
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
    check_.saw(name->step, name->worker);
    ++report_.index_files;
    report_.tensors += scan.tensors.size();
  }

  void tell(uint64_t bytes) { check_.tell(bytes); }

  storage::Storage& storage_;
  const VerifyOptions& options_;
  RunCheck check_;
  VerifyReport& report_ = check_.report;
  std::vector<FileInfo> indexes_;
  std::vector<FileInfo> temporary_;
  std::map<std::string, int64_t> events_;  // sizes by path
  std::set<std::string> named_;            // event files that an index names
  std::map<std::string, Step> newest_;     // by worker
};

}  // namespace

Result<VerifyReport> verify_original(storage::Storage& storage, const VerifyOptions& options) {
  return OriginalVerification(storage, options).run();
}

}  // namespace smd::internal
