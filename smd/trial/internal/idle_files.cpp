#include "smd/trial/internal/idle_files.h"

namespace smd::internal {

IdleFiles& IdleFiles::of_process(bool are_remote) {
  // Processes are often limited to 1024 files.
  constexpr size_t kMostFiles = 64;
  // Never destroyed: trials may end after static objects do.
  static auto& local = *new IdleFiles(kMostFiles);
  static auto& remote = *new IdleFiles(kMostFiles);
  return are_remote ? remote : local;
}

std::optional<OpenFile> IdleFiles::take(const OpenFiles& trial, uint64_t owner) {
  const std::lock_guard lock(mutex_);
  const auto known = by_key_.find({&trial, owner});
  if (known == by_key_.end()) return std::nullopt;
  OpenFile file = std::move(known->second->file);
  files_.erase(known->second);
  by_key_.erase(known);
  return file;
}

void IdleFiles::put(const OpenFiles& trial, OpenFile file) {
  const std::lock_guard lock(mutex_);
  const Key key(&trial, file.owner);
  if (by_key_.contains(key)) return;
  files_.push_front({key, std::move(file)});
  by_key_.emplace(key, files_.begin());
  if (files_.size() <= most_files_) return;
  by_key_.erase(files_.back().key);
  files_.pop_back();
}

void IdleFiles::remove(const OpenFiles& trial) {
  const std::lock_guard lock(mutex_);
  for (auto at = by_key_.lower_bound({&trial, 0}); at != by_key_.end() && at->first.first == &trial;
       at = by_key_.erase(at)) {
    files_.erase(at->second);
  }
}

size_t IdleFiles::count() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

}  // namespace smd::internal
