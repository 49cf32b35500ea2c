#pragma once

// Reads tensor records at the places that a snapshot knows. Keeps files open and, on remote
// storages, the small records of a step, which are read together. Thread-safe.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "smd/base/result.h"
#include "smd/format/event.h"
#include "smd/storage/storage.h"
#include "smd/trial/snapshot.h"
#include "smd/trial/tensor_value.h"

namespace smd::internal {

class RecordReader final {
 public:
  explicit RecordReader(std::shared_ptr<storage::Storage> storage) : storage_(std::move(storage)) {}

  Result<TensorValue> read(const Snapshot& snapshot, const Location& at);
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out);
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out);

 private:
  // Bytes [begin, end) of a file.
  struct Extent {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Block {
    uint64_t begin = 0;
    std::shared_ptr<const Bytes> bytes;
  };
  struct OpenFile {
    std::string path;
    std::unique_ptr<storage::ReadFile> file;
  };

  // A file that nobody else uses meanwhile; give it back for the next reader.
  Result<OpenFile> take(const std::string& path);
  void give_back(OpenFile file);

  // Calls visitor(position in `at`, tensor) for each record, in the order of files.
  using Visitor = std::function<Status(uint32_t, const format::TensorContent&)>;
  Status visit(const Snapshot& snapshot, std::span<const Location> at, const Visitor& visitor);

  Result<TensorValue> read_large(const Snapshot& snapshot, const Location& at, OpenFile& file);
  // A stretch that holds the record, and on remote storages its small neighbours.
  Result<Block> read_block(const Snapshot& snapshot, const Location& at);
  Result<Block> read_extent(OpenFile& file, const Extent& extent);
  Extent neighbourhood(const Snapshot& snapshot, const Location& at) const;

  const std::shared_ptr<storage::Storage> storage_;
  std::mutex mutex_;
  // All guarded by mutex_.
  std::list<OpenFile> idle_;  // last used first
  std::unordered_map<std::string_view, std::list<OpenFile>::iterator> idle_by_path_;
  std::map<std::string, Block> blocks_;  // by path and place
  uint64_t block_bytes_ = 0;
};

}  // namespace smd::internal
