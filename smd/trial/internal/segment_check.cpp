#include "smd/trial/internal/segment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "smd/base/bytes.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/packed/segment_file.h"
#include "smd/trial/internal/event_file.h"

namespace smd::internal {
namespace {

class SegmentCheck final {
 public:
  SegmentCheck(storage::Storage& storage, const SegmentFiles& files,
               const SegmentCheckOptions& options)
      : storage_(storage), files_(files), options_(options) {}

  Result<SegmentFinding> run();

 private:
  Status read_logs(const packed::SegmentScan& scan, const Result<std::string>& footer);
  void check_steps(uint64_t size);

  storage::Storage& storage_;
  const SegmentFiles& files_;
  const SegmentCheckOptions& options_;
  SegmentFinding found_;
};

Result<SegmentFinding> SegmentCheck::run() {
  if (!files_.segment_bytes) {
    found_.can_be_mended = false;
    if (options_.committed != nullptr) {
      found_.add({.fault = RunFault::segment_missing,
                  .file = files_.segment(),
                  .message = "The journal tells of this segment, which is not there."});
    } else if (files_.log_bytes != 0u) {
      found_.add(
          {.fault = RunFault::segment_missing,
           .file = files_.log(),
           .message = fmt::format("The log tells of '{}', which is not there.", files_.segment())});
    }
    return std::move(found_);
  }
  if (options_.knows_commits && options_.committed == nullptr) {
    found_.add({.fault = RunFault::log_missing,
                .is_damage = false,
                .file = files_.segment(),
                .message = "The segment is not in the journal, so that readers pass it over: it "
                           "is being sent, or whoever sent it was stopped."});
    return std::move(found_);
  }
  SMD_TRY(const auto file, storage_.open(files_.segment()));
  SMD_TRY(const uint64_t size, file->size());
  // Made, and never written to.
  if (size == 0 && files_.log_bytes.value_or(0) == 0) return std::move(found_);
  SMD_TRY(packed::SegmentScan scan, packed::scan_segment(*file, size));
  auto footer = packed::log_of_footer(*file, size);
  if (!footer.ok() && footer.error().code == ErrorCode::unsupported) return footer.error();
  SMD_RETURN_IF_ERROR(read_logs(scan, footer));
  check_steps(size);
  const bool known = std::any_of(found_.problems.begin(), found_.problems.end(),
                                 [](const RunProblem& problem) { return problem.is_damage; });
  if (found_.text.size() > scan.log.size() && !known) {
    found_.can_be_mended = false;
    found_.add({.fault = RunFault::record_broken,
                .file = files_.segment(),
                .offset = scan.end,
                .message = "The records of the segment cannot be followed from here to the next "
                           "block, as the frame of one of them is damaged."});
  }
  if (scan.end > found_.end && found_.can_be_mended && !found_.log_is_right) found_.end = scan.end;
  if (!footer.ok() && size > found_.end) {
    const bool closed = found_.log && found_.log->ended();
    found_.add({.fault = closed ? RunFault::footer_broken : RunFault::segment_torn,
                .is_damage = closed || options_.job_ended,
                .file = files_.segment(),
                .offset = found_.end,
                .message = closed ? footer.error().message
                                  : fmt::format("{} bytes follow the last whole step: a step is "
                                                "being written, or its writer was stopped.",
                                                size - found_.end)});
  } else if (!footer.ok() && found_.log && found_.log->ended()) {
    found_.add({.fault = RunFault::footer_broken,
                .file = files_.segment(),
                .message = "The log says that the segment is closed, but it has no footer."});
  }
  if (!footer.ok() && (!found_.log || !found_.log->ended())) {
    found_.add({.fault = RunFault::segment_unfinished,
                .is_damage = false,
                .file = files_.segment(),
                .message = options_.is_over
                               ? "Nobody closed the segment; readers see its whole steps."
                               : "The segment is not closed: its writer is at work, or was "
                                 "stopped."});
  }
  return std::move(found_);
}

// Which of the three texts that tell of the segment is to be trusted.
Status SegmentCheck::read_logs(const packed::SegmentScan& scan, const Result<std::string>& footer) {
  found_.log.emplace(files_.name);
  std::string text;
  Status status;
  const std::string* commit = options_.committed;
  const std::string log_file = commit != nullptr ? std::string(kJournalHead) : files_.log();
  if (commit != nullptr) {
    text = *commit;
    status = found_.log->read_more(text);
  } else if (files_.log_bytes) {
    auto bytes = storage::read_all(storage_, files_.log(), format::kMostLogBytes);
    if (bytes.ok()) {
      text = as_text(*bytes);
      status = found_.log->read_more(text);
    } else {
      status = bytes.error();
    }
    if (!status.ok() && status.error().code == ErrorCode::unsupported) {
      return Error{ErrorCode::unsupported,
                   fmt::format("{} File: {}", status.error().message, log_file)};
    }
  }
  const uint64_t understood = found_.log->size_bytes();
  const std::string_view whole = std::string_view(text).substr(0, understood);
  std::string end;
  format::append_log_entry(end, format::PackedEnd());
  const std::string_view steps =
      found_.log->ended() ? whole.substr(0, whole.size() - std::min(end.size(), whole.size()))
                          : whole;

  if (!files_.log_bytes && options_.has_journal && commit == nullptr) {
    // Taken from the footer, as readers of a copy do.
  } else if (!files_.log_bytes && commit == nullptr) {
    found_.add({.fault = RunFault::log_missing,
                .is_damage = options_.is_over || !scan.log.empty(),
                .file = files_.segment(),
                .message = fmt::format("The segment has no log '{}'; readers take what the "
                                       "segment itself says.",
                                       files_.log())});
  } else if (!status.ok() || (found_.log->ended() && understood < text.size())) {
    found_.add({.fault = RunFault::log_broken,
                .file = log_file,
                .offset = understood,
                .message = status.ok() ? std::string("Bytes follow the last entry of the log.")
                                       : status.error().message});
  } else if (found_.log->size_bytes() > 0 && found_.log->segment() != files_.segment()) {
    found_.can_be_mended = false;
    found_.add({.fault = RunFault::name_differs,
                .file = log_file,
                .message = fmt::format("The log is that of '{}'.", found_.log->segment())});
    return {};
  } else if (understood < text.size() ||
             (scan.log.size() > steps.size() && std::string_view(scan.log).starts_with(steps)) ||
             (footer.ok() && !found_.log->ended())) {
    found_.add({.fault = RunFault::log_incomplete,
                .is_damage = options_.job_ended,
                .file = log_file,
                .offset = understood,
                .message = options_.is_over
                               ? "The log ends before its segment does."
                               : "The log ends before its segment does: an entry is being "
                                 "written, or its writer was stopped."});
  } else if (!scan.log.starts_with(steps) && !steps.starts_with(scan.log)) {
    // Both have checksums of their own, so that it can be told which of the two is right.
    found_.add(
        {.fault = RunFault::record_broken,
         .file = files_.segment(),
         .message = fmt::format(
             "The blocks of the segment do not hold what the log says "
             "from its offset {} on.",
             std::mismatch(steps.begin(), steps.end(), scan.log.begin(), scan.log.end()).first -
                 steps.begin())});
    found_.can_be_mended = false;
    found_.text = steps;
    return {};
  } else {
    found_.text = steps;
    found_.footer_is_right = footer.ok() && *footer == whole;
    found_.log_is_right = found_.log->ended();
    if (footer.ok() && !found_.footer_is_right) {
      found_.add({.fault = RunFault::footer_broken,
                  .file = files_.segment(),
                  .message = "The footer of the segment does not hold its log."});
    }
    return {};
  }
  // The segment itself knows more.
  found_.log.emplace(files_.name);
  const std::string& better = footer.ok() ? *footer : scan.log;
  const Status salvaged = found_.log->read_more(better);
  if (!salvaged.ok() && salvaged.error().code == ErrorCode::unsupported) return salvaged;
  found_.footer_is_right = footer.ok() && salvaged.ok() && found_.log->ended();
  found_.text = better.substr(0, found_.log->size_bytes());
  if (found_.log->ended()) found_.text.resize(found_.text.size() - end.size());
  if (!salvaged.ok() || found_.text.size() < steps.size()) found_.can_be_mended = false;
  return {};
}

// Every record and every block that the log names.
void SegmentCheck::check_steps(uint64_t size) {
  auto events = EventFile::open(storage_, files_.segment());
  if (!events.ok() || !found_.log) return;
  const auto wrong = [&](RunFault fault, uint64_t offset, std::string message) {
    found_.add({.fault = fault,
                .file = files_.segment(),
                .offset = offset,
                .message = std::move(message)});
  };
  for (const format::PackedStep& step : found_.log->steps()) {
    if (step.base + step.length > size) {
      found_.can_be_mended = false;
      wrong(RunFault::record_outside, step.base,
            fmt::format("Step {} takes {} bytes, but the segment has {} bytes: it was cut off.",
                        step.info.step, step.length, size));
      continue;
    }
    if (step.base < found_.end) {
      found_.can_be_mended = false;
      wrong(RunFault::record_broken, step.base,
            fmt::format("Step {} lies over the step before it.", step.info.step));
    }
    found_.end = std::max(found_.end, step.base + step.length);
    for (const format::PackedRaw& raw : step.raws) {
      auto check = events->check({.name = found_.log->name(raw.tensor),
                                  .offset = step.base + raw.offset,
                                  .length = raw.length,
                                  .crc32c = raw.crc32c},
                                 options_.deep);
      ++found_.tensors;
      if (check.had_checksum) ++found_.payloads_checked;
      if (check.problem) found_.add(std::move(*check.problem));
    }
    const uint64_t numbers = found_.log->numbers_of(step);
    found_.tensors += numbers;
    const uint64_t at = step.base + step.block_offset;
    const auto crc = events->checksum(at, found_.log->number_bytes_of(step));
    if (!crc.ok()) {
      wrong(RunFault::record_broken, at, crc.error().message);
    } else if (*crc != step.block_crc32c) {
      wrong(RunFault::payload_differs, at,
            fmt::format("The numbers of step {} do not have the checksum {:#010x} that the log "
                        "says, but {:#010x}.",
                        step.info.step, step.block_crc32c, *crc));
    } else {
      found_.payloads_checked += numbers;
    }
  }
}

}  // namespace

Result<SegmentFinding> check_segment(storage::Storage& storage, const SegmentFiles& files,
                                     const SegmentCheckOptions& options) {
  return SegmentCheck(storage, files, options).run();
}

}  // namespace smd::internal
