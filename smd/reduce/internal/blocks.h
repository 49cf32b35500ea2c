#pragma once

// Walks a tensor in blocks of contiguous, aligned elements in native byte order.
// Points into the tensor where that is possible and copies a block into its own memory where not;
// the tensor is never copied as a whole. One thread at a time.

#include <cstddef>

#include "smd/base/bytes.h"
#include "smd/reduce/internal/kernels.h"
#include "smd/tensor/tensor_view.h"

namespace smd::internal {

class Blocks final {
 public:
  // Borrows the view, which check() has accepted, and what it points to.
  explicit Blocks(const TensorView& view);

  // The next elements, at most `most` and at most kBlockElements where they must be copied; empty
  // at the end. Valid until the next call.
  ByteSpan next(size_t most = kBlockElements);

 private:
  static constexpr size_t kLargestElement = 16;

  const TensorView& view_;
  const size_t item_;
  const int64_t size_;
  const bool in_place_;
  int64_t at_ = 0;
  alignas(64) std::byte copy_[kBlockElements * kLargestElement];
};

}  // namespace smd::internal
