#pragma once

// A Python value as a tensor: NumPy arrays and other buffers, DLPack producers, numbers, strings,
// lists. Borrows the producer's memory while it lives. Made and destroyed with the GIL held; the
// view may be read without it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/reduce/number.h"
#include "smd/tensor/tensor_view.h"
#include "smd/trial/tensor_value.h"

namespace smdebug {

namespace nb = nanobind;

class TensorArg final {
 public:
  // SMDebugTypeError for what is no tensor; `name` is the tensor in messages.
  TensorArg(nb::handle value, std::string_view name);
  ~TensorArg();
  TensorArg(const TensorArg&) = delete;
  TensorArg& operator=(const TensorArg&) = delete;

  bool holds_strings() const { return strings_.has_value(); }
  const std::vector<std::string>& strings() const { return *strings_; }
  const smd::Shape& shape() const { return shape_; }
  smd::TensorView view() const;

 private:
  bool take_buffer(nb::handle value);
  bool take_dlpack(nb::handle value);
  void take_array(nb::handle value, std::string_view name);
  void take_strings(nb::handle array, std::string_view name);

  nb::object owner_;
  std::optional<Py_buffer> buffer_;
  std::optional<nb::ndarray<nb::ro>> dlpack_;
  const void* data_ = nullptr;
  smd::DType dtype_ = smd::DType::float32;
  smd::Shape shape_;
  smd::Shape strides_;
  bool swapped_ = false;
  std::optional<std::vector<std::string>> strings_;
};

// A number, or anything that holds exactly one; SMDebugTypeError for others.
smd::Number to_number(nb::handle value, std::string_view name);

// The tensor as a NumPy array that owns its memory. bfloat16 and float8 are widened to float32.
nb::object to_numpy(const smd::DType dtype, const smd::Shape& shape, smd::Bytes elements);
// The same without a copy; strings become an array of text.
nb::object to_numpy(smd::TensorValue value);

}  // namespace smdebug
