#pragma once

// Brings a run from a local directory to where it belongs, as far as it is not there. One thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/delivery.h"
#include "smd/storage/storage.h"

namespace smd::storage {

struct SyncReport {
  int64_t files_sent = 0;
  uint64_t bytes_sent = 0;
  int64_t files_skipped = 0;  // were there with the same size
};

struct SyncProgress {
  std::string_view path;  // the file that comes next
  int64_t files_left = 0;
  uint64_t bytes_left = 0;
};

struct SyncOptions {
  // Before each file that is sent. False: stop, which gives the report so far.
  std::function<bool(const SyncProgress&)> progress;
  std::vector<std::string> skip;  // paths that stay where they are, such as a claim
  // For files that are not just copied. Empty: all are.
  std::shared_ptr<Delivery> delivery = nullptr;
  // Files that have arrived, or were there, are removed from the directory.
  bool remove_source = false;
};

// An index arrives after the data it names, and the end marker last, also when the run grows
// meanwhile. Files that are there with the same size are skipped. not_found: no such directory.
// closed: the directory is that of a spool whose process lives and sends its files itself.
Result<SyncReport> sync_to(const std::string& root, Storage& remote,
                           const SyncOptions& options = {});

}  // namespace smd::storage
