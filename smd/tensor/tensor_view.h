#pragma once

// A borrowed, possibly strided tensor in host memory, and an owned contiguous one.
// A view is valid as long as the memory and the spans it was made from; it is a parameter, not a
// member.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/tensor/dtype.h"

namespace smd {

using Shape = std::vector<int64_t>;

// Product of the extents; error if one is negative or the product exceeds 2^62.
Result<int64_t> element_count(std::span<const int64_t> shape);

struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::span<const int64_t> shape;
  // Bytes from one element to the next along each axis; may be zero or negative.
  // Empty: C order without gaps.
  std::span<const int64_t> strides_bytes = {};
  // The elements are in the other byte order.
  bool swapped = false;

  // Number of elements; shapes are checked by `check` first.
  int64_t size() const;
  int64_t size_bytes() const { return size() * static_cast<int64_t>(size_of(dtype)); }
  // C order without gaps and in our byte order: `data` can be used as it is.
  bool is_contiguous() const;
  // The bytes of a contiguous tensor.
  ByteSpan bytes() const;
};

// Error if the view cannot be read: negative extents, strides of another rank, no data, strings.
Status check(const TensorView& view);

// Copies elements [first, first + out.size() / size_of(dtype)) in C order and native byte order.
// `first` and the count must lie inside the tensor.
void gather(const TensorView& view, int64_t first, std::span<std::byte> out);

// Memory that nobody will change any more, kept alive by `owner`. Contiguous.
struct OwnedTensor {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  DType dtype = DType::float32;
  Shape shape;

  TensorView view() const { return {.data = data, .dtype = dtype, .shape = shape}; }
};

// Takes over a vector of numbers.
template <typename T>
OwnedTensor own(std::vector<T> values, DType dtype, Shape shape) {
  auto held = std::make_shared<const std::vector<T>>(std::move(values));
  return {.owner = held, .data = held->data(), .dtype = dtype, .shape = std::move(shape)};
}

}  // namespace smd
