#pragma once

// A part of a tensor, as people write it for NumPy: "0,:,2:10,::4". Plain values, pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"

namespace smd::server {

// One dimension: `count` positions from `first` on, `step` apart.
struct SlicePlace {
  int64_t first = 0;
  int64_t count = 0;
  int64_t step = 1;
  bool is_dropped = false;  // a single position, without a dimension in the result

  bool operator==(const SlicePlace&) const = default;
};

// A place for each dimension of the shape; those that the text does not name are whole.
// invalid_argument: no slice, too many places, a position outside of its dimension, a step below 1.
// As in NumPy, a range is cut to its dimension, and negative positions count from the end.
Result<std::vector<SlicePlace>> parse_slice(std::string_view text, const Shape& shape);

// "0,0:4:1": what parse_slice() reads as the same places.
std::string slice_text(const std::vector<SlicePlace>& places);
// Without the dropped dimensions.
Shape slice_shape(const std::vector<SlicePlace>& places);

// The elements as a view of `whole`, which must be contiguous. The shape and the strides are
// written to `shape` and `strides_bytes`, which the view borrows.
TensorView slice_view(const TensorView& whole, const std::vector<SlicePlace>& places, Shape& shape,
                      std::vector<int64_t>& strides_bytes);

}  // namespace smd::server
