#pragma once

// Commands on their way from the training thread to the writer thread, with the memory they refer
// to. A batch is filled by one thread, moved, and emptied by another; it is never shared.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "smd/format/tensor_record.h"
#include "smd/writer/late.h"
#include "smd/writer/output.h"
#include "smd/writer/sink.h"

namespace smd {

// A whole block of a large tensor is one piece of its file.
inline constexpr size_t kBlockBytes = format::kLargeAlignment;

struct FreeBlock {
  void operator()(std::byte* block) const;
};
using Block = std::unique_ptr<std::byte[], FreeBlock>;

// Blocks of kBlockBytes for snapshots. New memory costs as much as copying it, so blocks are
// reused, and when many are in use, one that the writer is about to give back is worth a short
// wait. Thread-safe.
class BlockPool final {
 public:
  // Up to `warm` blocks are kept and reused. Past that many in use, take() waits up to `patience`
  // for one to come back before it makes another.
  BlockPool(size_t warm, std::chrono::microseconds patience) : warm_(warm), patience_(patience) {}
  Block take();
  void give(Block block);

 private:
  const size_t warm_;
  const std::chrono::microseconds patience_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable returned_;
  std::vector<Block> free_;
  size_t in_use_ = 0;
  bool waiting_pays_ = true;  // the last wait was not in vain
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
struct LateData {
  double wall_secs = 0;
  LateNumbers* numbers = nullptr;
};
// The tensor that follows is this memory.
struct AwaitMemory {
  LateMemory* memory = nullptr;
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
struct ScalarData {
  SavedScalar scalar;
};
struct HistogramData {
  SavedHistogram histogram;
};
struct TextData {
  SavedText text;
};
struct MembershipData {
  SavedMembership membership;
};
struct EndStep {};
struct PutFile {
  std::string_view path;
  std::string_view content;
};
struct EndJob {
  JobEnd end;
};

using Command = std::variant<BeginStep, TensorData, MoreData, ReductionData, LateData, AwaitMemory,
                             StringData, ShapeData, ScalarData, HistogramData, TextData,
                             MembershipData, EndStep, PutFile, EndJob>;

class Batch final {
 public:
  explicit Batch(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;
  ~Batch();

  // Adds a command whose views point into this batch (copy, reserve), into memory it keeps, or to
  // static memory.
  void add(Command command) {
    if (commands_.capacity() == 0) commands_.reserve(kUsualCommands);
    commands_.push_back(command);
  }
  const std::vector<Command>& commands() const { return commands_; }
  bool empty() const { return commands_.empty(); }

  // Uninitialised memory of this batch, aligned for any element type.
  std::span<std::byte> reserve(size_t bytes);
  std::string_view copy(std::string_view text);
  std::span<const std::string_view> copy_texts(std::span<const std::string_view> texts);
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
  // Enough for a step with a loss or two.
  static constexpr size_t kUsualCommands = 16;

  std::shared_ptr<BlockPool> pool_;
  std::vector<Command> commands_;
  std::vector<Block> blocks_;                        // the last one is being filled
  std::vector<std::unique_ptr<std::byte[]>> large_;  // reservations that no block can hold
  std::vector<std::shared_ptr<const void>> owners_;
  size_t used_ = kBlockBytes;  // of the last block
  size_t weight_ = 0;
};

}  // namespace smd
