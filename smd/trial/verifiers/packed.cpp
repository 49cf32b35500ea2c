#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "smd/base/crc32c.h"
#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_manifest.h"
#include "smd/packed/delivery.h"
#include "smd/packed/segment_file.h"
#include "smd/trial/internal/event_file.h"
#include "smd/trial/internal/run_check.h"
#include "smd/trial/internal/segment_log.h"

namespace smd::internal {
namespace {

using storage::FileInfo;

constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kHead = "v2/HEAD";
constexpr uint64_t kCopyBytes = uint64_t{4} << 20;

class Verification final {
 public:
  Verification(storage::Storage& storage, const VerifyOptions& options)
      : storage_(storage), options_(options), check_(storage, options) {}

  Result<VerifyReport> run() {
    check_.report.layout = RunLayout::packed;
    SMD_TRY(const auto files, storage_.list("", ""));
    for (const FileInfo& file : files) {
      if (!check_.take(file)) sort_in(file);
    }
    for (const FileInfo& file : temporary_) {
      check_.add({.fault = RunFault::temporary_file,
                  .is_damage = check_.ended(),
                  .file = file.path,
                  .message = "This is being written, or something that was stopped left it "
                             "behind."});
    }
    SMD_RETURN_IF_ERROR(read_journal());
    check_.check_collections(!segments_.empty());
    for (const auto& [key, files_of] : segments_) SMD_RETURN_IF_ERROR(check_segment(files_of));
    return check_.finish();
  }

 private:
  struct Files {
    format::PackedFileName name;
    std::optional<uint64_t> log_bytes;
    std::optional<uint64_t> segment_bytes;

    std::string log() const { return format::log_file_name(name.writer, name.sequence); }
    std::string segment() const { return format::segment_file_name(name.writer, name.sequence); }
  };
  // In the order of writing: worker, incarnation, segment.
  using Key = std::tuple<std::string, uint64_t, std::string, uint32_t>;
  static Key key_of(const format::PackedFileName& name) {
    return {name.worker, name.micros, name.writer, name.sequence};
  }

  // What is known of a segment and its log.
  struct Finding {
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

  void sort_in(const FileInfo& file) {
    const std::string_view path = file.path;
    const bool log = path.starts_with("v2/log/");
    const bool segment = path.starts_with("v2/seg/");
    if (path == kHead) has_journal_ = true;
    if (path == "v2" || path == "v2/log" || path == "v2/seg" || path == "collections") {
      check_.add({.fault = RunFault::link,
                  .file = file.path,
                  .message = "This is a link where a folder is expected; it is not followed."});
      return;
    }
    if (!log && !segment) return;
    if (path.ends_with(kTemporary)) {
      temporary_.push_back(file);
      return;
    }
    if (const auto stat = storage_.stat(path); !stat.ok()) {
      check_.add({.fault = RunFault::link, .file = file.path, .message = stat.error().message});
      return;
    }
    const auto name = format::parse_packed_file_name(path);
    const bool ours =
        name && path == (log ? format::log_file_name(name->writer, name->sequence)
                             : format::segment_file_name(name->writer, name->sequence));
    if (!ours) {
      check_.add({.fault = RunFault::file_name,
                  .is_damage = false,
                  .file = file.path,
                  .message = "This is not the name of a segment or a log, so that readers pass it "
                             "over."});
      return;
    }
    Files& files = segments_[key_of(*name)];
    files.name = *name;
    const auto size = static_cast<uint64_t>(file.size_bytes);
    (log ? files.log_bytes : files.segment_bytes) = size;
    ++(log ? check_.report.index_files : check_.report.event_files);
    if (segment) check_.report.event_bytes += size;
  }

  // In an object store the journal has the logs. A copy of its objects is read from the footers.
  Status read_journal() {
    if (!has_journal_) return {};
    auto journal = packed::journal_of({std::shared_ptr<void>(), &storage_});
    const auto entries = journal.read_new();
    if (!entries.ok()) {
      if (entries.error().code == ErrorCode::unsupported) return {};
      check_.add({.fault = RunFault::log_broken,
                  .file = std::string(kHead),
                  .message = entries.error().message});
      return {};
    }
    knows_commits_ = true;
    for (const storage::JournalEntry& entry : *entries) {
      auto manifest = format::parse_manifest(as_bytes(entry.content));
      if (!manifest.ok()) {
        if (manifest.error().code == ErrorCode::unsupported) return manifest.error();
        check_.add(
            {.fault = RunFault::log_broken,
             .file = std::string(kHead),
             .message = fmt::format("Entry {}: {}", entry.number, manifest.error().message)});
        continue;
      }
      if (manifest->segment.empty()) continue;
      const auto name = format::parse_packed_file_name(manifest->segment);
      if (!name || manifest->segment != format::segment_file_name(name->writer, name->sequence)) {
        check_.add({.fault = RunFault::file_name,
                    .file = std::string(kHead),
                    .message = fmt::format("Entry {} names '{}', which is not the name of a "
                                           "segment.",
                                           entry.number, manifest->segment)});
        continue;
      }
      segments_[key_of(*name)].name = *name;
      committed_[manifest->segment] = std::move(manifest->log);
      ++check_.report.index_files;
    }
    return {};
  }

  // Its log in the journal; nullptr: the journal has none.
  const std::string* committed(const Files& files) const {
    const auto found = committed_.find(files.segment());
    return found == committed_.end() ? nullptr : &found->second;
  }

  // Whether its writer is certainly gone, or has gone on to another segment.
  bool is_over(const Files& files) const {
    if (check_.ended() || options_.stopped) return true;
    const auto next = segments_.upper_bound(key_of(files.name));
    return next != segments_.end() && std::get<0>(next->first) == files.name.worker;
  }

  Status check_segment(const Files& files) {
    SMD_TRY(Finding found, look_at(files));
    check_.report.tensors += found.tensors;
    check_.report.payloads_checked += found.payloads_checked;
    if (found.log) {
      for (const auto& step : found.log->steps()) {
        check_.saw(step.info.step, files.name.worker);
      }
    }
    // Objects are put whole, so there is nothing that a dead writer left half done.
    if (options_.repair && !has_journal_ && !found.problems.empty() && found.can_be_mended) {
      SMD_RETURN_IF_ERROR(repair(files, found));
    }
    for (RunProblem& problem : found.problems) check_.add(std::move(problem));
    check_.tell(files.segment_bytes.value_or(0));
    return {};
  }

  Result<Finding> look_at(const Files& files) {
    Finding found;
    const bool over = is_over(files);
    if (!files.segment_bytes) {
      found.can_be_mended = false;
      if (committed(files) != nullptr) {
        found.add({.fault = RunFault::segment_missing,
                   .file = files.segment(),
                   .message = "The journal tells of this segment, which is not there."});
      } else if (files.log_bytes != 0u) {
        found.add({.fault = RunFault::segment_missing,
                   .file = files.log(),
                   .message =
                       fmt::format("The log tells of '{}', which is not there.", files.segment())});
      }
      return found;
    }
    if (knows_commits_ && committed(files) == nullptr) {
      found.add({.fault = RunFault::log_missing,
                 .is_damage = false,
                 .file = files.segment(),
                 .message = "The segment is not in the journal, so that readers pass it over: it "
                            "is being sent, or whoever sent it was stopped."});
      return found;
    }
    SMD_TRY(const auto file, storage_.open(files.segment()));
    SMD_TRY(const uint64_t size, file->size());
    // Made, and never written to.
    if (size == 0 && files.log_bytes.value_or(0) == 0) return found;
    SMD_TRY(packed::SegmentScan scan, packed::scan_segment(*file, size));
    auto footer = packed::log_of_footer(*file, size);
    if (!footer.ok() && footer.error().code == ErrorCode::unsupported) return footer.error();
    SMD_RETURN_IF_ERROR(read_logs(files, over, scan, footer, found));
    check_steps(files, size, found);
    const bool known = std::any_of(found.problems.begin(), found.problems.end(),
                                   [](const RunProblem& problem) { return problem.is_damage; });
    if (found.text.size() > scan.log.size() && !known) {
      found.can_be_mended = false;
      found.add({.fault = RunFault::record_broken,
                 .file = files.segment(),
                 .offset = scan.end,
                 .message = "The records of the segment cannot be followed from here to the next "
                            "block, as the frame of one of them is damaged."});
    }
    if (scan.end > found.end && found.can_be_mended && !found.log_is_right) found.end = scan.end;
    if (!footer.ok() && size > found.end) {
      const bool closed = found.log && found.log->ended();
      found.add({.fault = closed ? RunFault::footer_broken : RunFault::segment_torn,
                 .is_damage = closed || check_.ended(),
                 .file = files.segment(),
                 .offset = found.end,
                 .message = closed ? footer.error().message
                                   : fmt::format("{} bytes follow the last whole step: a step is "
                                                 "being written, or its writer was stopped.",
                                                 size - found.end)});
    } else if (!footer.ok() && found.log && found.log->ended()) {
      found.add({.fault = RunFault::footer_broken,
                 .file = files.segment(),
                 .message = "The log says that the segment is closed, but it has no footer."});
    }
    if (!footer.ok() && (!found.log || !found.log->ended())) {
      found.add({.fault = RunFault::segment_unfinished,
                 .is_damage = false,
                 .file = files.segment(),
                 .message = over ? "Nobody closed the segment; readers see its whole steps."
                                 : "The segment is not closed: its writer is at work, or was "
                                   "stopped."});
    }
    return found;
  }

  // Which of the three texts that tell of the segment is to be trusted.
  Status read_logs(const Files& files, bool over, const packed::SegmentScan& scan,
                   const Result<std::string>& footer, Finding& found) {
    found.log.emplace(files.name);
    std::string text;
    Status status;
    const std::string* commit = committed(files);
    const std::string log_file = commit != nullptr ? std::string(kHead) : files.log();
    if (commit != nullptr) {
      text = *commit;
      status = found.log->read_more(text);
    } else if (files.log_bytes) {
      auto bytes = storage::read_all(storage_, files.log(), format::kMostLogBytes);
      if (bytes.ok()) {
        text = as_text(*bytes);
        status = found.log->read_more(text);
      } else {
        status = bytes.error();
      }
      if (!status.ok() && status.error().code == ErrorCode::unsupported) {
        return Error{ErrorCode::unsupported,
                     fmt::format("{} File: {}", status.error().message, log_file)};
      }
    }
    const uint64_t understood = found.log->size_bytes();
    const std::string_view whole = std::string_view(text).substr(0, understood);
    std::string end;
    format::append_log_entry(end, format::PackedEnd());
    const std::string_view steps =
        found.log->ended() ? whole.substr(0, whole.size() - std::min(end.size(), whole.size()))
                           : whole;

    if (!files.log_bytes && has_journal_ && commit == nullptr) {
      // Taken from the footer, as readers of a copy do.
    } else if (!files.log_bytes && commit == nullptr) {
      found.add({.fault = RunFault::log_missing,
                 .is_damage = over || !scan.log.empty(),
                 .file = files.segment(),
                 .message = fmt::format("The segment has no log '{}'; readers take what the "
                                        "segment itself says.",
                                        files.log())});
    } else if (!status.ok() || (found.log->ended() && understood < text.size())) {
      found.add({.fault = RunFault::log_broken,
                 .file = log_file,
                 .offset = understood,
                 .message = status.ok() ? std::string("Bytes follow the last entry of the log.")
                                        : status.error().message});
    } else if (found.log->size_bytes() > 0 && found.log->segment() != files.segment()) {
      found.can_be_mended = false;
      found.add({.fault = RunFault::name_differs,
                 .file = log_file,
                 .message = fmt::format("The log is that of '{}'.", found.log->segment())});
      return {};
    } else if (understood < text.size() ||
               (scan.log.size() > steps.size() && std::string_view(scan.log).starts_with(steps)) ||
               (footer.ok() && !found.log->ended())) {
      found.add({.fault = RunFault::log_incomplete,
                 .is_damage = check_.ended(),
                 .file = log_file,
                 .offset = understood,
                 .message = over ? "The log ends before its segment does."
                                 : "The log ends before its segment does: an entry is being "
                                   "written, or its writer was stopped."});
    } else if (!scan.log.starts_with(steps) && !steps.starts_with(scan.log)) {
      // Both have checksums of their own, so that it can be told which of the two is right.
      found.add(
          {.fault = RunFault::record_broken,
           .file = files.segment(),
           .message = fmt::format(
               "The blocks of the segment do not hold what the log says "
               "from its offset {} on.",
               std::mismatch(steps.begin(), steps.end(), scan.log.begin(), scan.log.end()).first -
                   steps.begin())});
      found.can_be_mended = false;
      found.text = steps;
      return {};
    } else {
      found.text = steps;
      found.footer_is_right = footer.ok() && *footer == whole;
      found.log_is_right = found.log->ended();
      if (footer.ok() && !found.footer_is_right) {
        found.add({.fault = RunFault::footer_broken,
                   .file = files.segment(),
                   .message = "The footer of the segment does not hold its log."});
      }
      return {};
    }
    // The segment itself knows more.
    found.log.emplace(files.name);
    const std::string& better = footer.ok() ? *footer : scan.log;
    const Status salvaged = found.log->read_more(better);
    if (!salvaged.ok() && salvaged.error().code == ErrorCode::unsupported) return salvaged;
    found.footer_is_right = footer.ok() && salvaged.ok() && found.log->ended();
    found.text = better.substr(0, found.log->size_bytes());
    if (found.log->ended()) found.text.resize(found.text.size() - end.size());
    if (!salvaged.ok() || found.text.size() < steps.size()) found.can_be_mended = false;
    return {};
  }

  // Every record and every block that the log names.
  void check_steps(const Files& files, uint64_t size, Finding& found) {
    auto events = EventFile::open(storage_, files.segment());
    if (!events.ok() || !found.log) return;
    const auto wrong = [&](RunFault fault, uint64_t offset, std::string message) {
      found.add({.fault = fault,
                 .file = files.segment(),
                 .offset = offset,
                 .message = std::move(message)});
    };
    for (const format::PackedStep& step : found.log->steps()) {
      if (step.base + step.length > size) {
        found.can_be_mended = false;
        wrong(RunFault::record_outside, step.base,
              fmt::format("Step {} takes {} bytes, but the segment has {} bytes: it was cut off.",
                          step.info.step, step.length, size));
        continue;
      }
      if (step.base < found.end) {
        found.can_be_mended = false;
        wrong(RunFault::record_broken, step.base,
              fmt::format("Step {} lies over the step before it.", step.info.step));
      }
      found.end = std::max(found.end, step.base + step.length);
      for (const format::PackedRaw& raw : step.raws) {
        auto check = events->check({.name = found.log->name(raw.tensor),
                                    .offset = step.base + raw.offset,
                                    .length = raw.length,
                                    .crc32c = raw.crc32c},
                                   options_.deep);
        ++found.tensors;
        if (check.had_checksum) ++found.payloads_checked;
        if (check.problem) found.add(std::move(*check.problem));
      }
      const uint64_t numbers = found.log->numbers_of(step);
      found.tensors += numbers;
      const uint64_t at = step.base + step.block_offset;
      const auto crc = events->checksum(at, found.log->number_bytes_of(step));
      if (!crc.ok()) {
        wrong(RunFault::record_broken, at, crc.error().message);
      } else if (*crc != step.block_crc32c) {
        wrong(RunFault::payload_differs, at,
              fmt::format("The numbers of step {} do not have the checksum {:#010x} that the log "
                          "says, but {:#010x}.",
                          step.info.step, step.block_crc32c, *crc));
      } else {
        found.payloads_checked += numbers;
      }
    }
  }

  Status repair(const Files& files, Finding& found) {
    const auto mendable = [](const RunProblem& problem) {
      switch (problem.fault) {
        case RunFault::log_missing:
        case RunFault::log_broken:
        case RunFault::log_incomplete:
        case RunFault::segment_torn:
        case RunFault::segment_unfinished:
        case RunFault::footer_broken: return true;
        default: return false;
      }
    };
    if (std::none_of(found.problems.begin(), found.problems.end(), mendable)) return {};
    if (!is_over(files)) {
      for (RunProblem& problem : found.problems) {
        if (mendable(problem)) {
          problem.message +=
              " It is not repaired, as its writer may be at work; --stopped says "
              "that it is not.";
        }
      }
      return {};
    }
    if (!found.footer_is_right) SMD_RETURN_IF_ERROR(close_segment(files, found));
    if (!found.log_is_right) SMD_RETURN_IF_ERROR(write_log(files, found));
    SMD_TRY(const FileInfo segment, storage_.stat(files.segment()));
    SMD_TRY(const FileInfo log, storage_.stat(files.log()));
    const Files now{.name = files.name,
                    .log_bytes = static_cast<uint64_t>(log.size_bytes),
                    .segment_bytes = static_cast<uint64_t>(segment.size_bytes)};
    SMD_TRY(const Finding again, look_at(now));
    for (RunProblem& problem : found.problems) {
      const bool still =
          std::any_of(again.problems.begin(), again.problems.end(),
                      [&](const RunProblem& other) { return other.fault == problem.fault; });
      problem.mended = mendable(problem) && !still;
    }
    return {};
  }

  // Writes the segment anew up to the end of its last whole step, and gives it a footer.
  Status close_segment(const Files& files, const Finding& found) {
    std::string footer;
    if (!found.text.empty()) {
      SMD_RETURN_IF_ERROR(format::append_footer(footer, found.end, closed_text(found)));
    }
    SMD_TRY(const auto from, storage_.open(files.segment()));
    SMD_TRY(const uint64_t size, from->size());
    SMD_TRY(const auto to, storage_.create(files.segment(), {.durable = true}));
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
    check_.report.repairs.push_back({files.segment(), std::move(message)});
    return {};
  }

  Status write_log(const Files& files, const Finding& found) {
    // Without a step both files are empty, as they were made.
    const std::string text = found.text.empty() ? "" : closed_text(found);
    SMD_RETURN_IF_ERROR(
        storage_.put(files.log(), as_bytes(text), storage::Put::always, {.durable = true}));
    check_.report.repairs.push_back(
        {files.log(),
         fmt::format("Rebuilt from the segment with {} steps.", found.log->steps().size())});
    return {};
  }

  static std::string closed_text(const Finding& found) {
    std::string text = found.text;
    format::append_log_entry(text, format::PackedEnd());
    return text;
  }

  storage::Storage& storage_;
  const VerifyOptions& options_;
  RunCheck check_;
  std::map<Key, Files> segments_;
  std::vector<FileInfo> temporary_;
  bool has_journal_ = false;                      // the run lies in an object store, or did
  bool knows_commits_ = false;                    // and the journal could be read
  std::map<std::string, std::string> committed_;  // logs by the paths of their segments
};

}  // namespace

Result<VerifyReport> verify_packed(storage::Storage& storage, const VerifyOptions& options) {
  return Verification(storage, options).run();
}

}  // namespace smd::internal
