#pragma once

// The files of a trial that are open, ready for whoever reads next. Thread-safe.

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/snapshot.h"

namespace smd::internal {

// Belongs to a part rather than to a path, as a file that was written again is another part; parts
// share files that only grow.
struct OpenFile {
  uint64_t owner = 0;
  std::string path;
  std::unique_ptr<storage::ReadFile> file;
};

class OpenFiles final {
 public:
  explicit OpenFiles(storage::Storage& storage) : storage_(storage) {}

  // A file that nobody else uses meanwhile; give it back for the next reader.
  Result<OpenFile> take(const Snapshot& snapshot, uint32_t part);
  void give_back(OpenFile file);

 private:
  storage::Storage& storage_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<OpenFile> idle_;  // last used first
  std::unordered_map<uint64_t, std::list<OpenFile>::iterator> idle_by_owner_;
};

}  // namespace smd::internal
