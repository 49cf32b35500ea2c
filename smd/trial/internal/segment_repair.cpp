#include "smd/trial/internal/segment_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "smd/base/bytes.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"

namespace smd::internal {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{4} << 20;

bool is_mendable(const RunProblem& problem) {
  switch (problem.fault) {
    case RunFault::log_missing:
    case RunFault::log_broken:
    case RunFault::log_incomplete:
    case RunFault::segment_torn:
    case RunFault::segment_unfinished:
    case RunFault::footer_broken: return true;
    default: return false;
  }
}

std::string closed_text(const SegmentFinding& found) {
  std::string text = found.text;
  format::append_log_entry(text, format::PackedEnd());
  return text;
}

// Writes the segment anew up to the end of its last whole step, and gives it a footer.
Result<RunRepair> close_segment(storage::Storage& storage, const SegmentFiles& files,
                                const SegmentFinding& found) {
  std::string footer;
  if (!found.text.empty()) {
    SMD_RETURN_IF_ERROR(format::append_footer(footer, found.end, closed_text(found)));
  }
  SMD_TRY(const auto from, storage.open(files.segment()));
  SMD_TRY(const uint64_t size, from->size());
  SMD_TRY(const auto to, storage.create(files.segment(), {.durable = true}));
  Bytes buffer(std::min(kCopyBytes, found.end));
  for (uint64_t at = 0; at < found.end;) {
    const uint64_t count = std::min<uint64_t>(buffer.size(), found.end - at);
    SMD_TRY(const size_t got, from->read_at(at, std::span(buffer).first(count)));
    if (got < count) {
      return Error{ErrorCode::truncated, fmt::format("The file became shorter while it was "
                                                     "copied: {}",
                                                     files.segment())};
    }
    SMD_RETURN_IF_ERROR(to->append({{ByteSpan(buffer).first(count)}}));
    at += count;
  }
  SMD_RETURN_IF_ERROR(to->append({{as_bytes(footer)}}));
  SMD_RETURN_IF_ERROR(to->commit());
  std::string message = found.text.empty() ? "Emptied, as it holds no whole step."
                                           : fmt::format("Closed with a footer after {} steps.",
                                                         found.log->steps().size());
  if (size > found.end && found.text.empty() == false) {
    message += fmt::format(" {} bytes after the last whole step were cut off.", size - found.end);
  }
  return RunRepair{files.segment(), std::move(message)};
}

Result<RunRepair> write_log(storage::Storage& storage, const SegmentFiles& files,
                            const SegmentFinding& found) {
  // Without a step both files are empty, as they were made.
  const std::string text = found.text.empty() ? "" : closed_text(found);
  SMD_RETURN_IF_ERROR(
      storage.put(files.log(), as_bytes(text), storage::Put::always, {.durable = true}));
  return RunRepair{files.log(), fmt::format("Rebuilt from the segment with {} steps.",
                                            found.log->steps().size())};
}

}  // namespace

Result<std::vector<RunRepair>> repair_segment(storage::Storage& storage, const SegmentFiles& files,
                                              const SegmentCheckOptions& options,
                                              SegmentFinding& found) {
  std::vector<RunRepair> repairs;
  if (std::none_of(found.problems.begin(), found.problems.end(), is_mendable)) return repairs;
  if (!options.is_over) {
    for (RunProblem& problem : found.problems) {
      if (is_mendable(problem)) {
        problem.message +=
            " It is not repaired, as its writer may be at work; --stopped says "
            "that it is not.";
      }
    }
    return repairs;
  }
  if (!found.footer_is_right) {
    SMD_TRY(auto repair, close_segment(storage, files, found));
    repairs.push_back(std::move(repair));
  }
  if (!found.log_is_right) {
    SMD_TRY(auto repair, write_log(storage, files, found));
    repairs.push_back(std::move(repair));
  }
  SMD_TRY(const storage::FileInfo segment, storage.stat(files.segment()));
  SMD_TRY(const storage::FileInfo log, storage.stat(files.log()));
  const SegmentFiles now{.name = files.name,
                         .log_bytes = static_cast<uint64_t>(log.size_bytes),
                         .segment_bytes = static_cast<uint64_t>(segment.size_bytes)};
  SMD_TRY(const SegmentFinding again, check_segment(storage, now, options));
  for (RunProblem& problem : found.problems) {
    const bool still =
        std::any_of(again.problems.begin(), again.problems.end(),
                    [&](const RunProblem& other) { return other.fault == problem.fault; });
    problem.mended = is_mendable(problem) && !still;
  }
  return repairs;
}

}  // namespace smd::internal
