#include "smd/native/dlpack.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

namespace smd {
namespace {

// The struct's fields are where dlpack.h has them.
static_assert(sizeof(smdebug_dl_tensor) == 48 && offsetof(smdebug_dl_tensor, device_type) == 8 &&
              offsetof(smdebug_dl_tensor, ndim) == 16 &&
              offsetof(smdebug_dl_tensor, dtype_code) == 20 &&
              offsetof(smdebug_dl_tensor, dtype_lanes) == 22 &&
              offsetof(smdebug_dl_tensor, shape) == 24 &&
              offsetof(smdebug_dl_tensor, byte_offset) == 40);

// Device types whose memory the CPU can read: its own, and that pinned for CUDA and ROCm.
bool is_host(int32_t device_type) {
  return device_type == 1 || device_type == 3 || device_type == 11;
}

std::optional<DType> dtype_from_dlpack(uint8_t code, uint8_t bits) {
  switch (code << 8 | bits) {
    case 0 << 8 | 8: return DType::int8;
    case 0 << 8 | 16: return DType::int16;
    case 0 << 8 | 32: return DType::int32;
    case 0 << 8 | 64: return DType::int64;
    case 1 << 8 | 8: return DType::uint8;
    case 1 << 8 | 16: return DType::uint16;
    case 1 << 8 | 32: return DType::uint32;
    case 1 << 8 | 64: return DType::uint64;
    case 2 << 8 | 16: return DType::float16;
    case 2 << 8 | 32: return DType::float32;
    case 2 << 8 | 64: return DType::float64;
    case 4 << 8 | 16: return DType::bfloat16;
    case 5 << 8 | 64: return DType::complex64;
    case 5 << 8 | 128: return DType::complex128;
    case 6 << 8 | 8: return DType::boolean;
    case 10 << 8 | 8: return DType::float8_e4m3fn;
    case 12 << 8 | 8: return DType::float8_e5m2;
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::span<const int64_t>> to_bytes(std::span<const int64_t> strides, DType dtype,
                                          AxisStrides& strides_bytes) {
  const auto item = static_cast<int64_t>(size_of(dtype));
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (__builtin_mul_overflow(strides[axis], item, &strides_bytes[axis])) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The stride {} of axis {} is too long.", strides[axis], axis)};
    }
  }
  return std::span<const int64_t>(strides_bytes).first(strides.size());
}

Result<TensorView> view_of_dlpack(const smdebug_dl_tensor& tensor, AxisStrides& strides_bytes) {
  if (!is_host(tensor.device_type)) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("The tensor is on a device of type {}, which the CPU cannot read; copy it "
                    "to the host first.",
                    tensor.device_type)};
  }
  return view_anywhere(tensor, strides_bytes);
}

Result<TensorView> view_anywhere(const smdebug_dl_tensor& tensor, AxisStrides& strides_bytes) {
  const auto dtype = dtype_from_dlpack(tensor.dtype_code, tensor.dtype_bits);
  if (!dtype || tensor.dtype_lanes != 1) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("Elements of DLPack code {} with {} bits and {} lanes cannot be saved.",
                    tensor.dtype_code, tensor.dtype_bits, tensor.dtype_lanes)};
  }
  if (tensor.ndim < 0 || tensor.ndim > SMDEBUG_MOST_AXES) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("A tensor has 0 to {} axes, not {}.", SMDEBUG_MOST_AXES, tensor.ndim)};
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return Error{ErrorCode::invalid_argument, "The tensor came without a shape."};
  }
  const auto rank = static_cast<size_t>(tensor.ndim);
  TensorView view{.dtype = *dtype, .shape = {tensor.shape, rank}};
  if (tensor.data != nullptr)
    view.data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.strides != nullptr) {
    SMD_TRY(view.strides_bytes, to_bytes({tensor.strides, rank}, *dtype, strides_bytes));
  }
  SMD_RETURN_IF_ERROR(check(view));
  return view;
}

}  // namespace smd
