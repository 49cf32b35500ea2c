#include <fmt/format.h>

#include <mutex>

#include "smd/format/packed_file_name.h"
#include "smd/trial/internal/poll.h"
#include "smd/trial/source.h"

namespace smd {
namespace {

// Serves as a run in the original's layout until a packed one is found or steps have been read.
class FoundSource final : public Source {
 public:
  explicit FoundSource(SourceOptions options)
      : options_(std::move(options)), current_(original_source(options_)) {}

  Status refresh(Staging& staging) override {
    if (!decided_) SMD_RETURN_IF_ERROR(decide());
    SMD_RETURN_IF_ERROR(current()->refresh(staging));
    if (staging.has_steps()) settle();
    return {};
  }
  Result<std::optional<double>> ended() override { return current()->ended(); }

  bool wait(std::chrono::steady_clock::time_point deadline) override {
    std::shared_ptr<storage::Watch> watch;
    std::shared_ptr<Source> source;
    {
      std::lock_guard lock(mutex_);
      watch = watch_;
      if (decided_) source = current_;
    }
    if (source) return source->wait(deadline);
    if (watch) {
      const bool changed = watch->wait(deadline);
      if (changed) drain(*watch);
      return changed;
    }
    return internal::wait_for_next_look(
        options_.storage->is_remote() ? internal::kRemotePoll : internal::kLocalPoll, deadline);
  }

  Result<TensorValue> read(const Snapshot& snapshot, const Location& at) override {
    return current()->read(snapshot, at);
  }
  Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at) override {
    return current()->describe(snapshot, at);
  }
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out) override {
    return current()->read_numbers(snapshot, at, out);
  }
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out) override {
    return current()->read_single_numbers(snapshot, at, out);
  }

 private:
  std::shared_ptr<Source> current() {
    std::lock_guard lock(mutex_);
    return current_;
  }

  // Only the first of several waiters takes the messages; the others look again, too.
  void drain(storage::Watch& watch) {
    std::lock_guard lock(mutex_);
    (void)watch.changes();
  }

  void settle() {
    std::lock_guard lock(mutex_);
    decided_ = true;
    watch_ = nullptr;
  }

  Status decide() {
    if (options_.storage->is_remote()) {
      SMD_TRY(auto committed, committed_source(options_));
      if (!committed) return {};
      SMD_RETURN_IF_ERROR(check_alone());
      become(std::move(committed));
      return {};
    }
    {
      // Before the look, so that nothing falls between the two.
      static const std::vector<std::string> kFolders = {std::string(format::kPackedFolder), "index",
                                                        "collections"};
      std::lock_guard lock(mutex_);
      if (!watch_) watch_ = options_.storage->watch(kFolders);
    }
    SMD_TRY(auto packed, options_.storage->list(format::kLogFolder, ""));
    if (packed.empty()) {
      SMD_TRY(packed, options_.storage->list(format::kSegmentFolder, ""));
    }
    if (packed.empty()) return {};
    SMD_RETURN_IF_ERROR(check_alone());
    become(packed_source(options_));
    return {};
  }

  // Of a place that holds a packed run.
  Status check_alone() {
    SMD_TRY(const auto indexes, options_.storage->list("index", ""));
    if (!indexes.empty() && !options_.storage->stat(format::kExportMark).ok()) {
      return Error{ErrorCode::unsupported,
                   fmt::format("The directory holds steps in the original layout (index/) and in "
                               "the packed one (v2/), which are two runs; move one of them to a "
                               "directory of its own: {}",
                               options_.storage->name())};
    }
    return {};
  }

  void become(std::shared_ptr<Source> source) {
    {
      std::lock_guard lock(mutex_);
      current_ = std::move(source);
    }
    settle();
  }

  const SourceOptions options_;
  std::mutex mutex_;
  std::shared_ptr<Source> current_;        // set under mutex_
  std::shared_ptr<storage::Watch> watch_;  // under mutex_; until it is decided
  bool decided_ = false;                   // set under mutex_, by refresh() alone
};

}  // namespace

std::unique_ptr<Source> found_source(SourceOptions options) {
  return std::make_unique<FoundSource>(std::move(options));
}

}  // namespace smd
