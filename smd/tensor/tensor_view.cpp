#include "smd/tensor/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/base/copy_past_cache.h"

namespace smd {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 62;
// Who copies so much at once reads it later: the writer, when the training goes on.
constexpr size_t kPastCacheBytes = size_t{256} << 10;

// Size of the unit whose bytes are swapped: a complex number is two of them.
size_t swap_unit(DType dtype) {
  return info_of(dtype).kind == DTypeKind::complex ? size_of(dtype) / 2 : size_of(dtype);
}

void swap_in_place(std::span<std::byte> bytes, size_t unit) {
  for (size_t at = 0; at + unit <= bytes.size(); at += unit) {
    std::reverse(bytes.begin() + at, bytes.begin() + at + unit);
  }
}

template <size_t N>
void copy_run(const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * N, from + i * stride, N);
}

void copy_run(const std::byte* from, int64_t stride, int64_t count, size_t item, std::byte* to) {
  if (stride == static_cast<int64_t>(item)) {
    std::memcpy(to, from, static_cast<size_t>(count) * item);
    return;
  }
  switch (item) {
    case 1: return copy_run<1>(from, stride, count, to);
    case 2: return copy_run<2>(from, stride, count, to);
    case 4: return copy_run<4>(from, stride, count, to);
    case 8: return copy_run<8>(from, stride, count, to);
    default: return copy_run<16>(from, stride, count, to);
  }
}

}  // namespace

Result<int64_t> element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The shape [{}] has a negative extent.", fmt::join(shape, ", "))};
    }
    empty = empty || extent == 0;
    if (extent != 0 && count > kMostElements / extent) {
      if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The shape [{}] has too many elements.", fmt::join(shape, ", "))};
    }
    if (extent != 0) count *= extent;
  }
  return empty ? 0 : count;
}

int64_t TensorView::size() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

bool TensorView::is_contiguous() const {
  if (swapped) return false;
  if (strides_bytes.empty()) return true;
  int64_t expected = static_cast<int64_t>(size_of(dtype));
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides_bytes[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

ByteSpan TensorView::bytes() const {
  return {static_cast<const std::byte*>(data), static_cast<size_t>(size_bytes())};
}

Status check(const TensorView& view) {
  SMD_TRY(const int64_t count, element_count(view.shape));
  if (view.dtype == DType::string) {
    return Error{ErrorCode::invalid_argument,
                 "Strings are saved as strings, not as a tensor view."};
  }
  if (!view.strides_bytes.empty() && view.strides_bytes.size() != view.shape.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("A tensor of rank {} came with {} strides.", view.shape.size(),
                             view.strides_bytes.size())};
  }
  if (count > 0 && view.data == nullptr) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("A tensor of shape [{}] came without data.", fmt::join(view.shape, ", "))};
  }
  return {};
}

void gather(const TensorView& view, int64_t first, std::span<std::byte> out) {
  const size_t item = size_of(view.dtype);
  const auto* base = static_cast<const std::byte*>(view.data);
  auto count = static_cast<int64_t>(out.size() / item);
  if (count == 0) return;
  if (view.strides_bytes.empty() || view.shape.empty()) {
    const std::byte* from = base + first * static_cast<int64_t>(item);
    if (out.size() >= kPastCacheBytes) {
      copy_past_cache(out, from);
    } else {
      std::memcpy(out.data(), from, out.size());
    }
  } else {
    const size_t rank = view.shape.size();
    // Coordinates of `first`.
    std::vector<int64_t> at(rank);
    int64_t rest = first;
    for (size_t axis = rank; axis-- > 0;) {
      at[axis] = rest % view.shape[axis];
      rest /= view.shape[axis];
    }
    std::byte* to = out.data();
    while (count > 0) {
      const std::byte* from = base;
      for (size_t axis = 0; axis < rank; ++axis) from += at[axis] * view.strides_bytes[axis];
      const int64_t run = std::min(count, view.shape[rank - 1] - at[rank - 1]);
      copy_run(from, view.strides_bytes[rank - 1], run, item, to);
      to += run * static_cast<int64_t>(item);
      count -= run;
      at[rank - 1] = 0;
      for (size_t axis = rank - 1; axis-- > 0;) {
        if (++at[axis] < view.shape[axis]) break;
        at[axis] = 0;
      }
    }
  }
  if (view.swapped) swap_in_place(out, swap_unit(view.dtype));
}

}  // namespace smd
