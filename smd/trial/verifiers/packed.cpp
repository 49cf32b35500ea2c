#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_manifest.h"
#include "smd/packed/delivery.h"
#include "smd/storage/temporary.h"
#include "smd/trial/internal/run_check.h"
#include "smd/trial/internal/segment_check.h"
#include "smd/trial/internal/segment_repair.h"

namespace smd::internal {
namespace {

using storage::FileInfo;

class PackedVerification final {
 public:
  PackedVerification(storage::Storage& storage, const VerifyOptions& options)
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
    for (const auto& [key, files_of] : segments_) SMD_RETURN_IF_ERROR(verify_segment(files_of));
    return check_.finish();
  }

 private:
  // In the order of writing: worker, incarnation, segment.
  using Key = std::tuple<std::string, uint64_t, std::string, uint32_t>;
  static Key key_of(const format::PackedFileName& name) {
    return {name.worker, name.micros, name.writer, name.sequence};
  }

  void sort_in(const FileInfo& file) {
    const std::string_view path = file.path;
    const bool log = path.starts_with("v2/log/");
    const bool segment = path.starts_with("v2/seg/");
    if (path == kJournalHead) has_journal_ = true;
    if (path == "v2" || path == "v2/log" || path == "v2/seg" || path == "collections") {
      check_.add({.fault = RunFault::link,
                  .file = file.path,
                  .message = "This is a link where a folder is expected; it is not followed."});
      return;
    }
    if (!log && !segment) return;
    if (storage::is_temporary(path)) {
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
    SegmentFiles& files = segments_[key_of(*name)];
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
                  .file = std::string(kJournalHead),
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
             .file = std::string(kJournalHead),
             .message = fmt::format("Entry {}: {}", entry.number, manifest.error().message)});
        continue;
      }
      if (manifest->segment.empty()) continue;
      const auto name = format::parse_packed_file_name(manifest->segment);
      if (!name || manifest->segment != format::segment_file_name(name->writer, name->sequence)) {
        check_.add({.fault = RunFault::file_name,
                    .file = std::string(kJournalHead),
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
  const std::string* committed(const SegmentFiles& files) const {
    const auto found = committed_.find(files.segment());
    return found == committed_.end() ? nullptr : &found->second;
  }

  // Whether its writer is certainly gone, or has gone on to another segment.
  bool is_over(const SegmentFiles& files) const {
    if (check_.ended() || options_.stopped) return true;
    const auto next = segments_.upper_bound(key_of(files.name));
    return next != segments_.end() && std::get<0>(next->first) == files.name.worker;
  }

  Status verify_segment(const SegmentFiles& files) {
    const SegmentCheckOptions options{.deep = options_.deep,
                                      .is_over = is_over(files),
                                      .job_ended = check_.ended(),
                                      .has_journal = has_journal_,
                                      .knows_commits = knows_commits_,
                                      .committed = committed(files)};
    SMD_TRY(SegmentFinding found, check_segment(storage_, files, options));
    check_.report.tensors += found.tensors;
    check_.report.payloads_checked += found.payloads_checked;
    if (found.log) {
      for (const auto& step : found.log->steps()) {
        check_.saw(step.info.step, files.name.worker);
      }
    }
    // Objects are put whole, so there is nothing that a dead writer left half done.
    if (options_.repair && !has_journal_ && !found.problems.empty() && found.can_be_mended) {
      SMD_TRY(auto repairs, repair_segment(storage_, files, options, found));
      std::move(repairs.begin(), repairs.end(), std::back_inserter(check_.report.repairs));
    }
    for (RunProblem& problem : found.problems) check_.add(std::move(problem));
    check_.tell(files.segment_bytes.value_or(0));
    return {};
  }

  storage::Storage& storage_;
  const VerifyOptions& options_;
  RunCheck check_;
  std::map<Key, SegmentFiles> segments_;
  std::vector<FileInfo> temporary_;
  bool has_journal_ = false;                      // the run lies in an object store, or did
  bool knows_commits_ = false;                    // and the journal could be read
  std::map<std::string, std::string> committed_;  // logs by the paths of their segments
};

}  // namespace

Result<VerifyReport> verify_packed(storage::Storage& storage, const VerifyOptions& options) {
  return PackedVerification(storage, options).run();
}

}  // namespace smd::internal
