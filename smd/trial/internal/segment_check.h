#pragma once

// Holds one packed segment against the texts that tell of it: its log or its entry in the journal,
// its footer, and what its own records say. Trusts none of them. Pure reading; one thread at a
// time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/format/packed_file_name.h"
#include "smd/storage/storage.h"
#include "smd/trial/internal/segment_log.h"
#include "smd/trial/verify.h"

namespace smd::internal {

// The journal of a run in an object store.
inline constexpr std::string_view kJournalHead = "v2/HEAD";

// A segment and its log, as they were listed.
struct SegmentFiles {
  format::PackedFileName name;
  std::optional<uint64_t> log_bytes;  // nullopt: there is no such file
  std::optional<uint64_t> segment_bytes;

  std::string log() const { return format::log_file_name(name.writer, name.sequence); }
  std::string segment() const { return format::segment_file_name(name.writer, name.sequence); }
};

// What the rest of the run says.
struct SegmentCheckOptions {
  bool deep = false;           // see VerifyOptions
  bool is_over = false;        // the writer is certainly gone, or has gone on to another segment
  bool job_ended = false;      // the job said so
  bool has_journal = false;    // the run lies in an object store, or did
  bool knows_commits = false;  // and the journal could be read
  const std::string* committed = nullptr;  // its log in the journal; nullptr: that has none
};

struct SegmentFinding {
  std::vector<RunProblem> problems;
  std::optional<SegmentLog> log;  // what the segment holds, from the best place
  std::string text;               // of it, without its last entry
  uint64_t end = 0;               // of the last whole step
  bool log_is_right = false;      // the log's file says that, and that the segment is closed
  bool footer_is_right = false;
  bool can_be_mended = true;  // nothing is lost that the log knows of
  uint64_t tensors = 0;
  uint64_t payloads_checked = 0;

  void add(RunProblem problem) { problems.push_back(std::move(problem)); }
};

// unsupported: a later release wrote the segment. Other errors are those of the storage.
Result<SegmentFinding> check_segment(storage::Storage& storage, const SegmentFiles& files,
                                     const SegmentCheckOptions& options);

}  // namespace smd::internal
