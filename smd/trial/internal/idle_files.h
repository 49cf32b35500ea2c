#pragma once

// Open files that nobody reads from now, of all trials of a process, so that a server with many
// runs needs no more descriptors than one with a few. Who was used last stays longest. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "smd/storage/storage.h"

namespace smd::internal {

class OpenFiles;

// Belongs to a part rather than to a path, as a file that was written again is another part; parts
// share files that only grow.
struct OpenFile {
  uint64_t owner = 0;
  std::string path;
  std::unique_ptr<storage::ReadFile> file;
};

class IdleFiles final {
 public:
  explicit IdleFiles(size_t most_files) : most_files_(most_files) {}
  // Those that trials share. Files of remote storages have no descriptor and are kept apart, so
  // that neither kind takes the place of the other.
  static IdleFiles& of_process(bool are_remote);

  // nullopt: there is none.
  std::optional<OpenFile> take(const OpenFiles& trial, uint64_t owner);
  // Kept unless there is one like it; the one that was used longest ago is closed for it.
  void put(const OpenFiles& trial, OpenFile file);
  // Closes those of a trial that ends.
  void remove(const OpenFiles& trial);
  size_t count() const;

 private:
  using Key = std::pair<const OpenFiles*, uint64_t>;  // the owner in its trial
  struct Idle {
    Key key;
    OpenFile file;
  };

  const size_t most_files_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Idle> files_;  // last used first
  std::map<Key, std::list<Idle>::iterator> by_key_;
};

}  // namespace smd::internal
