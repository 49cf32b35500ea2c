#pragma once

// A storage for tests that fails when it is told to, and remembers in which order files arrived.
// Thread-safe.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "smd/storage/storage.h"

namespace smd::storage {

class FaultyStorage final : public Storage {
 public:
  explicit FaultyStorage(std::shared_ptr<Storage> inner = memory_storage())
      : inner_(std::move(inner)) {}

  // Every call fails from now on, or works again.
  void fail(bool failing) {
    std::lock_guard lock(mutex_);
    failing_ = failing;
  }
  // So many calls work from now on, and then none; the first that fails is carried out all the same
  // if its answer is only lost.
  void fail_after(int calls, bool lose_answer) {
    std::lock_guard lock(mutex_);
    calls_left_ = calls;
    lose_answer_ = lose_answer;
  }
  // Called once, by the next listing.
  void before_listing(std::function<void()> action) {
    std::lock_guard lock(mutex_);
    before_listing_ = std::move(action);
  }
  // Files arrive only while it is open.
  void hold(bool holding) {
    {
      std::lock_guard lock(mutex_);
      holding_ = holding;
    }
    changed_.notify_all();
  }
  std::vector<std::string> arrived() const {
    std::lock_guard lock(mutex_);
    return arrived_;
  }

  std::string name() const override { return "faulty://bucket/run"; }
  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check());
    SMD_TRY(auto file, inner_->create(path, options));
    return std::unique_ptr<WriteFile>(
        std::make_unique<File>(*this, std::string(path), std::move(file)));
  }
  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check());
    SMD_RETURN_IF_ERROR(arrive(std::string(path)));
    return counted([&] { return inner_->put(path, content, when, options); });
  }
  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check());
    return counted([&] { return inner_->open(path); });
  }
  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check());
    return inner_->stat(path);
  }
  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    SMD_RETURN_IF_ERROR(check());
    std::function<void()> action;
    {
      std::lock_guard lock(mutex_);
      action = std::exchange(before_listing_, nullptr);
    }
    if (action) action();
    return inner_->list(folder, start_after);
  }
  Result<std::optional<VersionedFile>> read_version(std::string_view path, std::string_view known,
                                                    uint64_t most_bytes) override {
    SMD_RETURN_IF_ERROR(check());
    return counted([&] { return inner_->read_version(path, known, most_bytes); });
  }
  Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                             std::string_view version) override {
    SMD_RETURN_IF_ERROR(check());
    SMD_RETURN_IF_ERROR(arrive(std::string(path)));
    return counted([&] { return inner_->replace(path, content, version); });
  }
  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check());
    SMD_RETURN_IF_ERROR(arrive("-" + std::string(path)));
    return counted([&] { return inner_->remove(path); });
  }
  Status sync() override { return check(); }

 private:
  struct File final : WriteFile {
    File(FaultyStorage& o, std::string p, std::unique_ptr<WriteFile> f)
        : owner(o), path(std::move(p)), file(std::move(f)) {}
    Status append(std::span<const ByteSpan> pieces) override { return file->append(pieces); }
    Status commit() override {
      SMD_RETURN_IF_ERROR(owner.arrive(path));
      return owner.counted([&] { return file->commit(); });
    }
    FaultyStorage& owner;
    std::string path;
    std::unique_ptr<WriteFile> file;
  };

  // The call, unless no more are left.
  template <typename Call>
  auto counted(Call&& call) -> decltype(call()) {
    bool works = true;
    bool happens = true;
    {
      std::lock_guard lock(mutex_);
      if (calls_left_) {
        works = *calls_left_ > 0;
        happens = works || (*calls_left_ == 0 && lose_answer_);
        --*calls_left_;
      }
    }
    if (!happens) return Error{ErrorCode::io, "The network is down."};
    auto answer = call();
    if (!works) return Error{ErrorCode::io, "The answer was lost."};
    return answer;
  }

  Status check() const {
    std::lock_guard lock(mutex_);
    return failing_ ? Status(Error{ErrorCode::io, "The network is down."}) : Status();
  }
  Status arrive(std::string path) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !holding_; });
    if (failing_) return Error{ErrorCode::io, "The network is down."};
    arrived_.push_back(std::move(path));
    return {};
  }

  const std::shared_ptr<Storage> inner_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::vector<std::string> arrived_;
  std::function<void()> before_listing_;
  std::optional<int> calls_left_;
  bool lose_answer_ = false;
  bool failing_ = false;
  bool holding_ = false;
};

}  // namespace smd::storage
