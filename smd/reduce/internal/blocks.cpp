#include "smd/reduce/internal/blocks.h"

#include <algorithm>

namespace smd::internal {
namespace {

bool is_aligned(const void* data, size_t item) {
  const size_t alignment = std::min<size_t>(item, 8);
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

}  // namespace

Blocks::Blocks(const TensorView& view)
    : view_(view),
      item_(size_of(view.dtype)),
      size_(view.size()),
      in_place_(view.is_contiguous() && is_aligned(view.data, item_)) {}

ByteSpan Blocks::next(size_t most) {
  const int64_t first = at_;
  if (!in_place_) most = std::min(most, kBlockElements);
  const size_t count = std::min(static_cast<size_t>(size_ - first), most);
  at_ += static_cast<int64_t>(count);
  if (in_place_) {
    return {static_cast<const std::byte*>(view_.data) + static_cast<size_t>(first) * item_,
            count * item_};
  }
  const std::span<std::byte> copy(copy_, count * item_);
  gather(view_, first, copy);
  return copy;
}

}  // namespace smd::internal
