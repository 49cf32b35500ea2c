#pragma once

// Reads index files into a staging: many at once on several threads, few on the calling one.
// Remembers the names and layouts it has seen, so that a step like the last one costs no look-up.
// One thread at a time.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/staging.h"

namespace smd::internal {

// A file that could not be read; it may be whole at another time.
struct BrokenIndex {
  std::string path;
  Error error;
};

class IndexLoader final {
 public:
  // With `keep_checksums` the parts know those of their payloads.
  IndexLoader(std::shared_ptr<storage::Storage> storage, bool keep_checksums);
  ~IndexLoader();

  // Paths of index files, sorted. Returns those that were left out.
  std::vector<BrokenIndex> load(std::span<const std::string> paths, Staging& staging);

 private:
  class Reader;

  const std::shared_ptr<storage::Storage> storage_;
  const bool keep_checksums_;
  std::vector<std::unique_ptr<Reader>> readers_;  // one per thread
};

}  // namespace smd::internal
