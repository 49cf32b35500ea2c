#pragma once

// Commands on their way from the training thread to the writer thread, with the memory they refer to.
// A batch is filled by one thread, moved, and emptied by another; it is never shared.

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "smd/writer/sink.h"

namespace smd {

inline constexpr size_t kBlockBytes = size_t{1} << 20;

using Block = std::unique_ptr<std::byte[]>;

// Blocks of kBlockBytes for reuse, so that snapshots land in memory that is already mapped. Thread-safe.
class BlockPool final {
 public:
  // Keeps at most this many unused blocks.
  explicit BlockPool(size_t kept) : kept_(kept) {}
  Block take();
  void give(Block block);

 private:
  const size_t kept_;
  std::mutex mutex_;
  std::vector<Block> free_;  // guarded by mutex_
};

struct BeginStep {
  StepInfo step;
};
struct TensorData {
  format::TensorHead head;
  ByteSpan elements;
};
struct MoreData {
  ByteSpan elements;
};
struct ReductionData {
  std::string_view tensor;
  double wall_secs = 0;
  std::span<const StoredReduction> values;
};
struct StringData {
  format::TensorHead head;
  std::span<const std::string_view> strings;
};
struct ShapeData {
  std::string_view tensor;
  std::string_view original_name;
  std::span<const int64_t> shape;
};
struct EndStep {};
struct PutFile {
  std::string_view path;
  std::string_view content;
};
struct EndJob {
  JobEnd end;
};

using Command = std::variant<BeginStep, TensorData, MoreData, ReductionData, StringData, ShapeData,
                             EndStep, PutFile, EndJob>;

class Batch final {
 public:
  explicit Batch(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;
  ~Batch();

  // Adds a command whose views point into this batch (copy, reserve), into memory it keeps, or to
  // static memory.
  void add(Command command) { commands_.push_back(command); }
  const std::vector<Command>& commands() const { return commands_; }
  bool empty() const { return commands_.empty(); }

  // Uninitialised memory of this batch, aligned for any element type.
  std::span<std::byte> reserve(size_t bytes);
  std::string_view copy(std::string_view text);
  template <typename T>
  std::span<const T> copy(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto to = reserve(values.size_bytes());
    if (!values.empty()) std::memcpy(to.data(), values.data(), values.size_bytes());
    return {reinterpret_cast<const T*>(to.data()), values.size()};
  }
  // Room left in the current block.
  size_t room() const { return kBlockBytes - used_; }

  // Keeps foreign memory of this size alive until the batch is gone.
  void keep(std::shared_ptr<const void> owner, size_t bytes);

  // Memory that waits on this batch.
  size_t weight() const { return weight_; }

 private:
  std::shared_ptr<BlockPool> pool_;
  std::vector<Command> commands_;
  std::vector<Block> blocks_;  // the last one is being filled
  std::vector<Block> large_;   // reservations that no block can hold
  std::vector<std::shared_ptr<const void>> owners_;
  size_t used_ = kBlockBytes;  // of the last block
  size_t weight_ = 0;
};

}  // namespace smd
