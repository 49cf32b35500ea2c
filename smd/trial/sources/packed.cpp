#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/trial/internal/collection_files.h"
#include "smd/trial/internal/poll.h"
#include "smd/trial/internal/record_reader.h"
#include "smd/trial/internal/segment_log.h"
#include "smd/trial/source.h"

namespace smd {
namespace {

// A thread is worth its start from this many logs on.
constexpr size_t kLogsPerThread = 16;
constexpr size_t kMostThreads = 8;

class PackedSource final : public Source {
 public:
  explicit PackedSource(SourceOptions options)
      : options_(std::move(options)),
        collections_(options_.storage, options_.log),
        reader_(options_.storage) {}

  Status refresh(Staging& staging) override {
    std::optional<std::vector<std::string>> changed;
    if (watch_) {
      SMD_TRY(changed, watch_->changes());
    } else {
      // Before the first listing, so that nothing falls between the two.
      static const std::vector<std::string> kFolders = {std::string(format::kPackedFolder),
                                                        "collections"};
      static const std::vector<std::string> kGrowing = {std::string(format::kLogFolder)};
      std::shared_ptr<storage::Watch> watch = options_.storage->watch(kFolders, kGrowing);
      std::lock_guard lock(watch_mutex_);
      watch_ = std::move(watch);
    }
    if (!changed) return refresh_all(staging);

    bool collections_changed = false;
    std::set<std::string> logs;
    for (std::string& path : *changed) {
      if (internal::is_collections_file(path)) collections_changed = true;
      if (path.starts_with(format::kLogFolder)) logs.insert(std::move(path));
    }
    if (collections_changed) SMD_RETURN_IF_ERROR(collections_.refresh(staging));
    logs.insert(damaged_.begin(), damaged_.end());
    return load({logs.begin(), logs.end()}, staging);
  }

  Result<std::optional<double>> ended() override {
    if (ended_) return ended_;
    const auto marker = options_.storage->stat(format::kEndMarker);
    if (marker.ok()) {
      constexpr double kNanos = 1e9;
      ended_ = static_cast<double>(marker->mtime_ns) / kNanos;
    } else if (marker.error().code != ErrorCode::not_found) {
      return marker.error();
    }
    return ended_;
  }

  bool wait(std::chrono::steady_clock::time_point deadline) override {
    std::shared_ptr<storage::Watch> watch;
    {
      std::lock_guard lock(watch_mutex_);
      watch = watch_;
    }
    if (watch) return watch->wait(deadline);
    return internal::wait_for_next_look(internal::kLocalPoll, deadline);
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
  Status refresh_all(Staging& staging) {
    SMD_RETURN_IF_ERROR(collections_.refresh(staging));
    SMD_TRY(const auto files, options_.storage->list(format::kLogFolder, ""));
    std::vector<std::string> paths;
    for (const auto& file : files) {
      const auto known = logs_.find(file.path);
      const bool grown = known == logs_.end() ||
                         known->second->size_bytes() < static_cast<uint64_t>(file.size_bytes);
      if (grown || damaged_.contains(file.path)) paths.push_back(file.path);
    }
    // Segments whose log is gone; one that is just being made has its log in a moment.
    SMD_TRY(const auto segments, options_.storage->list(format::kSegmentFolder, ""));
    for (const auto& segment : segments) {
      const auto name = format::parse_packed_file_name(segment.path);
      if (!name) continue;
      const std::string log = format::log_file_name(name->writer, name->sequence);
      const auto at = std::lower_bound(
          files.begin(), files.end(), log,
          [](const storage::FileInfo& file, const std::string& path) { return file.path < path; });
      const bool has_log = at != files.end() && at->path == log;
      int64_t& seen = segment_sizes_[segment.path];
      if (!has_log && std::exchange(seen, segment.size_bytes) != segment.size_bytes) {
        paths.push_back(log);
      }
    }
    std::sort(paths.begin(), paths.end());
    return load(paths, staging);
  }

  // Reads logs, many of them on several threads, and adds what they say in the order of their
  // paths: that of the incarnations of each worker.
  Status load(std::vector<std::string> paths, Staging& staging) {
    struct Task {
      const std::string* path = nullptr;
      internal::SegmentLog* log = nullptr;
      Status status;
    };
    std::vector<Task> tasks;
    for (const std::string& path : paths) {
      const auto name = format::parse_packed_file_name(path);
      if (!name || !path.starts_with(format::kLogFolder)) continue;
      auto& log = logs_[path];
      if (!log) log = std::make_unique<internal::SegmentLog>(*name);
      if (!log->ended()) tasks.push_back({.path = &path, .log = log.get()});
    }
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < tasks.size(); i = next++) {
        tasks[i].status = read_one(*tasks[i].log);
      }
    };
    const size_t processors = std::max(1u, std::thread::hardware_concurrency());
    const size_t wanted =
        std::clamp<size_t>(tasks.size() / kLogsPerThread, 1, std::min(kMostThreads, processors));
    std::vector<std::thread> threads;
    for (size_t i = 1; i < wanted; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();

    for (const Task& task : tasks) {
      task.log->merge(staging, options_.check);
      damaged_.erase(*task.path);
      if (task.status.ok()) continue;
      const Error& error = task.status.error();
      if (error.code == ErrorCode::unsupported) return error;
      damaged_.insert(*task.path);
      if (reported_.insert(*task.path).second) {
        options_.log->warning(
            fmt::format("A segment is read up to where it is whole. {}", error.message));
      }
    }
    return {};
  }

  Status read_one(internal::SegmentLog& log) const {
    Status status = log.read(*options_.storage);
    if (status.ok() || status.error().code == ErrorCode::unsupported) return status;
    // The segment knows as much as its log.
    const uint64_t before = log.size_bytes();
    const Status salvaged = log.read_segment(*options_.storage);
    if (!salvaged.ok() && salvaged.error().code == ErrorCode::unsupported) return salvaged;
    const bool missing = status.error().code == ErrorCode::not_found;
    return missing || log.ended() || log.size_bytes() > before ? Status() : status;
  }

  const SourceOptions options_;
  internal::CollectionFiles collections_;
  internal::RecordReader reader_;
  std::mutex watch_mutex_;
  std::shared_ptr<storage::Watch> watch_;  // set under watch_mutex_, by refresh() alone
  std::map<std::string, std::unique_ptr<internal::SegmentLog>> logs_;  // by path
  std::map<std::string, int64_t> segment_sizes_;                       // of those that have no log
  std::set<std::string> damaged_;                                      // logs to be tried again
  std::set<std::string> reported_;                                     // those that were told of
  std::optional<double> ended_;  // when the end marker was written
};

}  // namespace

std::unique_ptr<Source> packed_source(SourceOptions options) {
  return std::make_unique<PackedSource>(std::move(options));
}

}  // namespace smd
