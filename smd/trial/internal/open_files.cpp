#include "smd/trial/internal/open_files.h"

namespace smd::internal {
namespace {

// A server may have many runs open, and processes are often limited to 1024 files.
constexpr size_t kMostIdleFiles = 32;

uint64_t owner_of(const Snapshot& snapshot, uint32_t part) {
  constexpr uint64_t kShared = uint64_t{1} << 32;
  return snapshot.part(part).append_only ? kShared | snapshot.part(part).file : part;
}

}  // namespace

Result<OpenFile> OpenFiles::take(const Snapshot& snapshot, uint32_t part) {
  const uint64_t owner = owner_of(snapshot, part);
  {
    std::lock_guard lock(mutex_);
    if (const auto known = idle_by_owner_.find(owner); known != idle_by_owner_.end()) {
      const auto at = known->second;
      idle_by_owner_.erase(known);
      OpenFile file = std::move(*at);
      idle_.erase(at);
      return file;
    }
  }
  std::string path = snapshot.file_of(snapshot.part(part));
  SMD_TRY(auto file, storage_.open(path));
  return OpenFile{owner, std::move(path), std::move(file)};
}

void OpenFiles::give_back(OpenFile file) {
  std::lock_guard lock(mutex_);
  if (idle_by_owner_.contains(file.owner)) return;
  idle_.push_front(std::move(file));
  idle_by_owner_.emplace(idle_.front().owner, idle_.begin());
  if (idle_.size() <= kMostIdleFiles) return;
  idle_by_owner_.erase(idle_.back().owner);
  idle_.pop_back();
}

}  // namespace smd::internal
