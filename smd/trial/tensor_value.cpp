#include "smd/trial/tensor_value.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace smd {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

std::shared_ptr<std::byte> allocate_aligned(uint64_t bytes, uint64_t at) {
  const uint64_t before = (kAlignment - at % kAlignment) % kAlignment;
  const bool large = bytes >= 2 * kHugePage;
  const uint64_t alignment = large ? kHugePage : kAlignment;
  const uint64_t size = (before + bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, std::max(size, alignment));
  if (memory == nullptr) return nullptr;
  // Fewer page faults: filling fresh memory is what reading a large tensor mostly costs.
  if (large) (void)::madvise(memory, size, MADV_HUGEPAGE);
  const std::shared_ptr<void> owner(memory, &std::free);
  return {owner, static_cast<std::byte*>(memory) + before};
}

}  // namespace smd
