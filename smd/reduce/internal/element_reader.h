#pragma once

// Walks a tensor as elements of one of the five types that the kernels compute with:
// small floats become float, small integers int32_t, uint32 int64_t, complex numbers their absolute
// values as double. One thread at a time.

#include <span>
#include <type_traits>

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

  // The next elements, at most `most` and at most kBlockElements unless they are read as they lie
  // in memory; empty at the end. Valid until the next call.
  std::span<const T> next(size_t most = kBlockElements);

 private:
  // Whether the elements are of type T already.
  bool as_they_are() const;
  const T* widened(ByteSpan raw, size_t count);

  const Kernels& kernels_;
  const DType dtype_;
  const int exponent_;
  Blocks blocks_;
  alignas(64) T wide_[kBlockElements];
};

// Calls f with the std::type_identity of the type that computes elements of `dtype`, not a string.
template <typename F>
void for_computing_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
    case DType::complex64:
    case DType::complex128: return f(std::type_identity<double>());
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::uint8:
    case DType::uint16:
    case DType::boolean: return f(std::type_identity<int32_t>());
    case DType::uint32:
    case DType::int64: return f(std::type_identity<int64_t>());
    case DType::uint64: return f(std::type_identity<uint64_t>());
    default: return f(std::type_identity<float>());
  }
}

extern template class ElementReader<float>;
extern template class ElementReader<double>;
extern template class ElementReader<int32_t>;
extern template class ElementReader<int64_t>;
extern template class ElementReader<uint64_t>;

}  // namespace smd::internal
