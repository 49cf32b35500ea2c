#pragma once

// Walks a tensor as elements of one of the five types that the kernels compute with:
// small floats become float, small integers int32_t, uint32 int64_t, complex numbers their absolute
// values as double. One thread at a time.

#include <span>

#include "smd/reduce/internal/blocks.h"
#include "smd/reduce/internal/kernels.h"

namespace smd::internal {

// T is the type that computes the tensor's elements, as for_computing_type chooses it.
template <typename T>
class ElementReader final {
 public:
  // Borrows both. With an exponent, elements are multiplied by two to its power; T must be double.
  ElementReader(const Kernels& kernels, const TensorView& view, int exponent = 0)
      : kernels_(kernels), dtype_(view.dtype), exponent_(exponent), blocks_(view) {}

  // The next elements, at most kBlockElements; empty at the end. Valid until the next call.
  std::span<const T> next();

 private:
  const T* widened(ByteSpan raw, size_t count);

  const Kernels& kernels_;
  const DType dtype_;
  const int exponent_;
  Blocks blocks_;
  alignas(64) T wide_[kBlockElements];
};

// Calls f with a null pointer to the type that computes elements of `dtype`, which is not a string.
template <typename F>
void for_computing_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
    case DType::complex64:
    case DType::complex128:
      return f(static_cast<double*>(nullptr));
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::uint8:
    case DType::uint16:
    case DType::boolean:
      return f(static_cast<int32_t*>(nullptr));
    case DType::uint32:
    case DType::int64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::uint64:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      return f(static_cast<float*>(nullptr));
  }
}

extern template class ElementReader<float>;
extern template class ElementReader<double>;
extern template class ElementReader<int32_t>;
extern template class ElementReader<int64_t>;
extern template class ElementReader<uint64_t>;

}  // namespace smd::internal
