#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "smd/format/file_name.h"
#include "smd/trial/internal/collection_files.h"
#include "smd/trial/internal/index_loader.h"
#include "smd/trial/internal/poll.h"
#include "smd/trial/internal/record_reader.h"
#include "smd/trial/source.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

constexpr std::string_view kIndexFolder = "index";
// Damaged files that are tried again at each refresh.
constexpr size_t kMostRetries = 64;
// Damaged files that are reported one by one.
constexpr size_t kMostReports = 20;

bool is_index_file(std::string_view path) {
  return path.starts_with(kIndexFolder) && (path.ends_with(".json") || path.ends_with(".csv"));
}

class OriginalSource final : public Source {
 public:
  explicit OriginalSource(SourceOptions options)
      : options_(std::move(options)),
        collections_(options_.storage, options_.log),
        loader_(options_.storage, options_.check),
        reader_(options_.storage) {}

  Status refresh(Staging& staging) override {
    std::optional<std::vector<std::string>> changed;
    if (watch_) {
      SMD_TRY(changed, watch_->changes());
    } else {
      // Before the first listing, so that nothing falls between the two.
      static const std::vector<std::string> kWatched = {std::string(kIndexFolder), "collections"};
      std::shared_ptr<storage::Watch> watch = options_.storage->watch(kWatched);
      std::lock_guard lock(watch_mutex_);
      watch_ = std::move(watch);
    }
    if (!changed) return refresh_all(staging);

    std::vector<std::string> paths;
    bool collections_changed = false;
    for (std::string& path : *changed) {
      if (internal::is_collections_file(path)) collections_changed = true;
      // A known name that is reported again was written again.
      if (is_index_file(path)) paths.push_back(std::move(path));
    }
    if (collections_changed) SMD_RETURN_IF_ERROR(collections_.refresh(staging));
    return load(std::move(paths), staging);
  }

  Result<std::optional<double>> ended() override {
    if (ended_ || options_.storage->is_remote()) return ended_;  // remote: listings tell
    const auto marker = options_.storage->stat(format::kEndMarker);
    if (marker.ok()) note_end(*marker);
    if (!marker.ok() && marker.error().code != ErrorCode::not_found) return marker.error();
    return ended_;
  }

  bool wait(std::chrono::steady_clock::time_point deadline) override {
    if (const auto watch = current_watch()) return watch->wait(deadline);
    return internal::wait_for_next_look(
        options_.storage->is_remote() ? internal::kRemotePoll : internal::kLocalPoll, deadline);
  }

  Result<TensorValue> read(const Snapshot& snapshot, const Location& at) override {
    return reader_.read(snapshot, at);
  }
  Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at) override {
    return reader_.describe(snapshot, at);
  }
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out) override {
    return reader_.read_numbers(snapshot, at, out);
  }
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out) override {
    return reader_.read_single_numbers(snapshot, at, out);
  }

 private:
  std::shared_ptr<storage::Watch> current_watch() {
    std::lock_guard lock(watch_mutex_);
    return watch_;
  }

  Status refresh_all(Staging& staging) {
    const bool remote = options_.storage->is_remote();
    const bool opened = !staging.workers().empty() &&
                        static_cast<int64_t>(staging.workers().size()) >= staging.num_workers();
    // A request of its own on remote storages: until the run can be opened, and at its end.
    if (!remote || !opened || std::exchange(at_end_, false)) {
      SMD_RETURN_IF_ERROR(collections_.refresh(staging));
    }
    // What comes before the last complete step was read or is given up on; only a first look, or
    // one after missed messages, goes through everything.
    std::string start = watch_ != nullptr || !std::exchange(listed_, true) ? "" : token(staging);
    // On remote storages one listing tells of the end marker, too, as its name comes after.
    if (remote && start.empty()) start = kIndexFolder;
    SMD_TRY(const auto files, options_.storage->list(remote ? "" : kIndexFolder, start));
    std::vector<std::string> paths;
    for (const auto& file : files) {
      if (remote && file.path == format::kEndMarker) note_end(file);
      if (is_index_file(file.path) && !read_.contains(file.path)) paths.push_back(file.path);
    }
    read_.erase(read_.begin(), read_.upper_bound(start));  // not listed any more
    return load(std::move(paths), staging);
  }

  void note_end(const storage::FileInfo& marker) {
    if (ended_) return;
    constexpr double kNanos = 1e9;
    ended_ = static_cast<double>(marker.mtime_ns) / kNanos;
    at_end_ = true;
  }

  // The last index file of the last complete step.
  static std::string token(const Staging& staging) {
    if (staging.last_complete_step() < 0 || staging.workers().empty()) return "";
    return format::index_file_name(staging.last_complete_step(),
                                   worker_to_file_name(staging.workers().back()));
  }

  Status load(std::vector<std::string> paths, Staging& staging) {
    paths.insert(paths.end(), broken_.begin(), broken_.end());
    std::ranges::sort(paths);
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    if (paths.empty()) return {};
    broken_.clear();
    for (const internal::BrokenIndex& broken : loader_.load(paths, staging)) {
      if (broken.error.code == ErrorCode::not_found) continue;  // removed meanwhile
      if (broken_.size() < kMostRetries) broken_.insert(broken.path);
      report(broken);
    }
    // Only listings need to know what was read.
    if (!watch_) {
      for (std::string& path : paths) {
        if (!broken_.contains(path)) read_.insert(std::move(path));
      }
    }
    return {};
  }

  void report(const internal::BrokenIndex& broken) {
    if (reported_.size() >= kMostReports || !reported_.insert(broken.path).second) return;
    options_.log->warning(
        fmt::format("An index file is left out until it is whole. {}", broken.error.message));
  }

  const SourceOptions options_;
  internal::CollectionFiles collections_;
  internal::IndexLoader loader_;
  internal::RecordReader reader_;
  std::mutex watch_mutex_;
  std::shared_ptr<storage::Watch> watch_;  // set under watch_mutex_, by refresh() alone
  bool listed_ = false;                    // everything, once
  std::set<std::string> read_;             // index files, where nothing reports new ones
  std::set<std::string> broken_;           // to be tried again
  std::set<std::string> reported_;         // those that were told of
  bool at_end_ = false;                    // the end marker was just seen
  std::optional<double> ended_;            // when the end marker was written
};

}  // namespace

std::unique_ptr<Source> original_source(SourceOptions options) {
  return std::make_unique<OriginalSource>(std::move(options));
}

}  // namespace smd
