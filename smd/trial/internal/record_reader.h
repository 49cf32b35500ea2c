#pragma once

// Reads tensor records and numbers of blocks at the places that a snapshot knows. Keeps files open
// and the small records of steps that are visited again, or lie on remote storages, within the
// budget of the process. Thread-safe.

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/internal/kept_blocks.h"
#include "smd/trial/internal/open_files.h"
#include "smd/trial/snapshot.h"
#include "smd/trial/tensor_value.h"

namespace smd::internal {

class RecordReader final {
 public:
  explicit RecordReader(std::shared_ptr<storage::Storage> storage)
      : storage_(std::move(storage)), files_(*storage_) {}

  Result<TensorValue> read(const Snapshot& snapshot, const Location& at);
  Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at);
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out);
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out);

 private:
  // Bytes [begin, end), counted from the beginning of a part in its file.
  struct Extent {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Block {
    uint64_t begin = 0;
    uint64_t size_bytes = 0;
    std::shared_ptr<const std::byte> bytes;

    ByteSpan at(const Extent& extent) const {
      return ByteSpan(bytes.get(), size_bytes)
          .subspan(extent.begin - begin, extent.end - extent.begin);
    }
    ByteSpan at(const Layout::Entry& entry) const {
      return at(Extent{entry.offset, entry.offset + entry.length});
    }
  };

  // Calls visitor(position in `at`, tensor), which returns a Status, for each record, in the order
  // of files.
  template <typename Visitor>
  Status visit(const Snapshot& snapshot, std::span<const Location> at, Visitor&& visitor);

  // The bytes that a number or record needs to be read and checked.
  static Extent extent_of(const Snapshot& snapshot, const Location& at);
  Result<TensorValue> read_split(const Snapshot& snapshot, const Location& at);
  static Result<double> read_piece(const Part& part, const Layout::Piece& piece, OpenFile& file,
                                   std::span<std::byte> out);
  Result<TensorValue> read_large(const Snapshot& snapshot, const Location& at, OpenFile& file);
  // Bytes that hold the extent, from the file or from what is kept.
  Result<Block> read_block(const Snapshot& snapshot, uint32_t part, const Extent& wanted);
  // `room` becomes the one where it can be kept; nullptr: it is not to be.
  Result<Block> read_extent(OpenFile& file, uint64_t base, const Extent& extent,
                            KeptBlocks::Room* room);
  // Small records of a part that lie close together.
  std::shared_ptr<const std::vector<Extent>> stretches_of(const Snapshot& snapshot, uint32_t part);
  static std::vector<Extent> stretches_of(const Layout& layout);
  // False at the first call.
  bool is_second_visit(uint32_t part);

  const std::shared_ptr<storage::Storage> storage_;
  OpenFiles files_;
  KeptBlocks kept_;  // by part and number of the stretch
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<bool> visited_;                                                           // by part
  std::unordered_map<uint32_t, std::shared_ptr<const std::vector<Extent>>> stretches_;  // by layout
};

}  // namespace smd::internal
