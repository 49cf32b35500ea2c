#include "smd/trial/internal/open_files.h"

namespace smd::internal {
namespace {

uint64_t owner_of(const Snapshot& snapshot, uint32_t part) {
  constexpr uint64_t kShared = uint64_t{1} << 32;
  return snapshot.part(part).append_only ? kShared | snapshot.part(part).file : part;
}

}  // namespace

Result<OpenFile> OpenFiles::take(const Snapshot& snapshot, uint32_t part) {
  const uint64_t owner = owner_of(snapshot, part);
  if (auto idle = idle_.take(*this, owner)) return std::move(*idle);
  std::string path = snapshot.file_of(snapshot.part(part));
  SMD_TRY(auto file, storage_.open(path));
  return OpenFile{owner, std::move(path), std::move(file)};
}

}  // namespace smd::internal
