#include "tests/simulated_cuda/memory.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/simulated_cuda/settings.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace simulated_cuda {
namespace {

constexpr size_t kAlignment = 512;
constexpr int kFreed = 0xff;  // of floats: NaN

uint64_t address_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace

Memory& Memory::all() {
  static auto& memory = *new Memory;
  return memory;
}

void* Memory::allocate(size_t bytes, int device) {
  if (device == kHost) {
    const std::lock_guard lock(mutex_);
    if (locked_bytes_ + bytes > Settings::get().locked_bytes) return nullptr;
    locked_bytes_ += bytes;
  }
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory != nullptr) add(memory, bytes, device);
  return memory;
}

void Memory::add(void* memory, size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  const uint64_t begin = address_of(memory);
  auto next = regions_.lower_bound(begin + bytes);
  while (next != regions_.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second.bytes <= begin) break;
    next = regions_.erase(last);
  }
  regions_[begin] = {.bytes = bytes, .device = device};
}

bool Memory::free(void* memory, int device) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(address_of(memory));
  if (found == regions_.end() || found->second.device != device) return false;
  std::memset(memory, kFreed, found->second.bytes);
  found->second.device = kNobody;
  return true;
}

const Memory::Region* Memory::region_of(uint64_t address, size_t bytes) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const auto& [begin, region] = *--after;
  return address - begin + bytes <= region.bytes ? &region : nullptr;
}

bool Memory::is_reached(uint64_t address, size_t bytes, int device) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = region_of(address, bytes);
  return region != nullptr && (region->device == device || region->device == kHost);
}

bool Memory::is_locked(const void* memory, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = region_of(address_of(memory), bytes);
  return region != nullptr && region->device == kHost;
}

int Memory::device_of(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = region_of(address, 1);
  return region != nullptr && region->device != kNobody ? region->device : kHost;
}

}  // namespace simulated_cuda

void simulated_cuda_register(void* memory, size_t bytes, int device) {
  simulated_cuda::Memory::all().add(memory, bytes, device);
}
