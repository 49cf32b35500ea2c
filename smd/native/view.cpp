#include "smd/native/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace smd {
namespace {

Status too_many_axes(std::string_view what) {
  return Error{ErrorCode::invalid_argument,
               fmt::format("A view has at most {} {}; use a TensorView for more.",
                           Extents::kMostAxes, what)};
}

}  // namespace

Extents::Extents(std::span<const int64_t> extents)
    : size_(std::min(extents.size(), kMostAxes)), too_many_(extents.size() > kMostAxes) {
  std::copy_n(extents.begin(), size_, values_.begin());
}

View::View(DType dtype, const void* data, const Extents& shape, const Extents& strides)
    : dtype_(dtype), data_(data), shape_(shape), strided_(strides.size() > 0) {
  if (shape.too_many()) {
    status_ = too_many_axes("axes");
  } else if (strides.too_many()) {
    status_ = too_many_axes("strides");
  } else if (strided_ && strides.size() != shape.size()) {
    status_ = Error{
        ErrorCode::invalid_argument,
        fmt::format("A tensor of rank {} came with {} strides.", shape.size(), strides.size())};
  }
  const auto item = static_cast<int64_t>(size_of(dtype));
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (__builtin_mul_overflow(strides.values()[axis], item, &strides_bytes_[axis]) &&
        status_.ok()) {
      status_ = Error{ErrorCode::invalid_argument, fmt::format("The strides [{}] are too long.",
                                                               fmt::join(strides.values(), ", "))};
    }
  }
  if (status_.ok()) status_ = check(tensor());
}

View View::of(DType dtype, const void* data, size_t available, const Extents& shape) {
  View made(dtype, data, shape);
  if (made.status_.ok() && static_cast<uint64_t>(made.tensor().size()) != available) {
    made.status_ =
        Error{ErrorCode::invalid_argument, fmt::format("{} elements do not fill the shape [{}].",
                                                       available, fmt::join(shape.values(), ", "))};
  }
  return made;
}

TensorView View::tensor() const {
  // Neither data nor a readable shape: check() refuses such a view.
  static constexpr int64_t kUnusable[] = {-1};
  if (!status_.ok()) return {.dtype = dtype_, .shape = kUnusable};
  return {.data = data_,
          .dtype = dtype_,
          .shape = shape_.values(),
          .strides_bytes = strided_ ? std::span(strides_bytes_).first(shape_.size())
                                    : std::span<const int64_t>()};
}

}  // namespace smd
