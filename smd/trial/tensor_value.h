#pragma once

// A tensor read back from a run. Owns its memory, which is aligned for every element type.
// Plain value; copies share the memory.

#include <memory>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

struct TensorValue {
  DType dtype = DType::float32;
  Shape shape;
  ByteSpan elements;                 // C order, native byte order; into what `memory` holds
  std::vector<std::string> strings;  // instead of elements, when dtype is string
  double wall_secs = 0;              // when it was recorded
  std::shared_ptr<std::byte> memory;

  TensorView view() const { return {.data = elements.data(), .dtype = dtype, .shape = shape}; }
};

// The same without its elements.
struct TensorDescription {
  DType dtype = DType::float32;
  Shape shape;
  double wall_secs = 0;
};

// Memory for `bytes` bytes, to be read from this offset of a file, whose byte number `at` is
// aligned. Its content is undefined. nullptr: the system has no more.
std::shared_ptr<std::byte> allocate_aligned(uint64_t bytes, uint64_t at, uint64_t file_offset);

}  // namespace smd
