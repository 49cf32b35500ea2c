#pragma once

// Copies tensors of a device to page-locked memory of the host while the device goes on. They are
// first copied to a ring on the device, in the order of the stream that made them, and from there
// together on a stream of its own; those that find no room in the ring go straight to the host,
// which the stream that made them waits for. Never destroyed. Thread-safe.

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/gpu/driver.h"
#include "smd/gpu/host_arena.h"

namespace smd::gpu {

class Copier;

// Page-locked memory, and the event after which it holds what was copied.
struct HostBlock {
  std::byte* memory = nullptr;
  Event done = nullptr;
};

// Bytes of a device.
struct CopySource {
  Address from = 0;
  size_t size = 0;
};

// Lists that are longer in bytes are better copied in parts: the first arrive earlier.
inline constexpr size_t kCopiedTogether = size_t{128} << 20;

// Tensors on their way. Thread-safe.
class LateCopy final {
 public:
  // Where each of them lies in the block.
  struct Place {
    size_t offset = 0;
    size_t size = 0;
  };
  LateCopy(Copier& copier, const HostBlock& block, std::vector<Place> places)
      : copier_(copier), block_(block), places_(std::move(places)) {}
  ~LateCopy();
  LateCopy(const LateCopy&) = delete;
  LateCopy& operator=(const LateCopy&) = delete;

  // Whether wait() returns at once.
  bool is_ready() const;
  // Error: the device has failed.
  Status wait() const;
  // Of one of the tensors, after wait().
  ByteSpan bytes(size_t tensor) const {
    return {block_.memory + places_[tensor].offset, places_[tensor].size};
  }

 private:
  Copier& copier_;
  const HostBlock block_;
  const std::vector<Place> places_;
  mutable std::atomic<bool> is_done_ = false;  // somebody has seen the event
};

struct CopierOptions {
  size_t ring_bytes = size_t{256} << 20;
};

// What the ring of a device with so much memory has, unless somebody says so.
size_t usual_ring_bytes(size_t memory_bytes);

class Copier final {
 public:
  // Borrows the driver. `context` is that of the device.
  Copier(const Driver& driver, Context context, const CopierOptions& options = {});

  // Queues the copies of tensors, which must stay as they are until the stream has come to it.
  Result<std::shared_ptr<LateCopy>> copy(std::span<const CopySource> sources, Stream stream);

 private:
  friend class LateCopy;

  // A part of the ring that is in use until the event.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    Event done = nullptr;
  };

  // With the mutex held and the context current.
  Result<HostBlock> take_block(size_t size);
  Result<Event> take_event();
  // The place of a new part, at most once per part; ring_bytes: there is no room.
  size_t take_part(size_t size);
  Status start_ring();
  Status copy_by_ring(size_t begin, std::span<const CopySource> sources,
                      std::span<const LateCopy::Place> places, Stream stream, const HostBlock& to);
  Status copy_straight(std::span<const CopySource> sources, std::span<const LateCopy::Place> places,
                       Stream stream, const HostBlock& to);
  void give_back(const HostBlock& block, bool is_done);
  void reuse(const HostBlock& block);  // with the mutex held

  const Driver& driver_;
  const Context context_;
  const CopierOptions options_;

  std::mutex mutex_;  // guards everything below
  HostArena memory_;
  std::vector<HostBlock> leaving_;  // given back, and perhaps not filled yet
  bool ring_started_ = false;
  Address ring_ = 0;  // none: there was no memory for it
  Stream side_ = nullptr;
  std::deque<Part> parts_;  // oldest first
  std::vector<Event> events_;
};

}  // namespace smd::gpu
