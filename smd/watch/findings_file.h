#pragma once

// The hits of one process as lines of JSON below the run: findings/<worker>.jsonl, or with a number
// before the suffix if another process of this name has left one. Lines appear whole, those of a
// step together. Made with the first of them. Where files cannot grow, as in an object store, each
// of these steps replaces the file, up to some megabytes of it. Writer thread only.

#include <memory>
#include <string>

#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::watch {

inline constexpr std::string_view kFindingsFolder = "findings";

class FindingsFile final {
 public:
  FindingsFile(std::shared_ptr<storage::Storage> storage, std::string worker)
      : storage_(std::move(storage)), worker_(std::move(worker)) {}

  void add(const Json& hit);
  // Writes what was added. After a failure it waits for the next call, up to a megabyte.
  Status flush();
  Status close();

 private:
  Status open();

  const std::shared_ptr<storage::Storage> storage_;
  const std::string worker_;
  std::string path_;                           // empty: not chosen yet
  std::unique_ptr<storage::AppendFile> file_;  // none: the file is replaced
  std::string written_;                        // then all of it
  std::string pending_;
};

}  // namespace smd::watch
