#pragma once

// The files of a trial that are open, ready for whoever reads next. Thread-safe.

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/internal/idle_files.h"
#include "smd/trial/snapshot.h"

namespace smd::internal {

class OpenFiles final {
 public:
  explicit OpenFiles(storage::Storage& storage)
      : OpenFiles(storage, IdleFiles::of_process(storage.is_remote())) {}
  OpenFiles(storage::Storage& storage, IdleFiles& idle) : storage_(storage), idle_(idle) {}
  ~OpenFiles() { idle_.remove(*this); }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  // A file that nobody else uses meanwhile; give it back for the next reader.
  Result<OpenFile> take(const Snapshot& snapshot, uint32_t part);
  void give_back(OpenFile file) { idle_.put(*this, std::move(file)); }

 private:
  storage::Storage& storage_;
  IdleFiles& idle_;
};

}  // namespace smd::internal
