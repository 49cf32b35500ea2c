#pragma once

// Checks the files of a run against each other and rebuilds what is lost or broken and can be told
// from the rest: index files, and in packed runs logs and the ends of segments.
// Trusts nothing that it reads: sizes are compared with the files before memory is taken, and only
// the storage decides what lies inside of the run. One thread at a time per run.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/types/run_layout.h"

namespace smd {

// What can be wrong with a run.
enum class RunFault {
  link,                    // a link that cannot be followed
  file_name,               // a name that no reader understands
  temporary_file,          // left behind by a writer that was stopped
  index_unreadable,        // not an index
  event_file_outside,      // an index names a file that is not inside of the run
  event_file_missing,      // an index names a file that is not there
  event_file_unindexed,    // no index names this event file
  record_outside,          // an index points behind the end of its event file
  record_broken,           // no record, or another length, where the index says
  name_differs,            // the record holds another tensor
  payload_differs,         // a checksum is wrong
  tensor_unreadable,       // the record is whole, but its tensor is not (deep only)
  bytes_unindexed,         // parts of an event file that no index names
  collections_missing,     // no reader opens a run without collections
  collections_unreadable,  // not a collections file
  workers_differ,          // those that wrote are not those that were announced
  end_marker_missing,      // the job still runs, or was stopped
  copy_incomplete,         // what an interrupted repack left behind
  log_missing,             // a packed segment without its log
  log_broken,              // a log that does not say what its segment holds
  log_incomplete,          // a log that ends before its segment does
  segment_missing,         // a log without its segment
  segment_torn,            // bytes after the last whole step of a segment
  segment_unfinished,      // a segment that nobody closed
  footer_broken,           // the end of a closed segment does not hold its log
};

// "record_outside" and so on, for programs.
std::string_view name_of(RunFault fault);

struct RunProblem {
  RunFault fault = RunFault::link;
  // False: worth knowing, but natural while a job runs or after it was stopped.
  bool is_damage = true;
  std::string file;                // relative to the run's root; empty: the run as a whole
  std::optional<uint64_t> offset;  // in the file
  std::string message;             // a sentence
  bool mended = false;             // by a repair of this call
};

struct RunRepair {
  std::string file;     // the file that was written
  std::string message;  // a sentence: what it holds now, and what is lost
};

struct VerifyReport {
  RunLayout layout = RunLayout::original;
  uint64_t steps = 0;
  uint64_t workers = 0;
  uint64_t index_files = 0;  // in packed runs logs
  uint64_t event_files = 0;  // in packed runs segments
  uint64_t event_bytes = 0;
  uint64_t collections_files = 0;
  uint64_t tensors = 0;           // entries of index files that were checked; numbers of blocks
  uint64_t payloads_checked = 0;  // of these, how many payloads had a checksum to compare with
  bool ended = false;
  std::vector<RunProblem> problems;  // sorted by file; the first kMostProblems of them
  uint64_t problems_not_listed = 0;
  uint64_t damage_not_listed = 0;  // of these
  std::vector<RunRepair> repairs;

  // Damage that is still there.
  uint64_t damage() const;
};

inline constexpr size_t kMostProblems = 10'000;

struct VerifyOptions {
  // Rebuild index files that are missing or broken from their event files; in packed runs logs from
  // their segments. Segments that nobody writes any more are closed.
  bool repair = false;
  // The writers of the run are gone. Known without this if the job has ended, and of segments after
  // which the same worker began another one.
  bool stopped = false;
  // Decode every tensor, too.
  bool deep = false;
  // Told from time to time how many bytes of event files are behind us, and of how many.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

// The storage should list temporary files and links, too (LocalOptions::everything).
// An error means that the run could not be checked at all, as it cannot be read or was written by a
// later release; what is wrong with it is in the report.
Result<VerifyReport> verify_run(storage::Storage& storage, const VerifyOptions& options);

}  // namespace smd
