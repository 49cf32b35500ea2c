#pragma once

// Reads tensors described the DLPack way, without that project's header. Pure functions.

#include <array>
#include <cstdint>
#include <span>

#include "smd/base/result.h"
#include "smd/c_api.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

// Strides in bytes of one view.
using AxisStrides = std::array<int64_t, SMDEBUG_MOST_AXES>;

// The view of a DLTensor, checked. Borrows its memory and its shape; `strides_bytes` receives the
// strides and must live as long. unsupported: memory that the CPU cannot read, or an element type
// that has no counterpart.
Result<TensorView> view_of_dlpack(const smdebug_dl_tensor& tensor, AxisStrides& strides_bytes);
// The same wherever the memory is: `data` of the view may be an address of a device.
Result<TensorView> view_anywhere(const smdebug_dl_tensor& tensor, AxisStrides& strides_bytes);

// The device type of memory of CUDA devices.
inline constexpr int32_t kDlpackCuda = 2;

// Strides in elements as strides in bytes, checked for overflow. At most SMDEBUG_MOST_AXES.
Result<std::span<const int64_t>> to_bytes(std::span<const int64_t> strides, DType dtype,
                                          AxisStrides& strides_bytes);

}  // namespace smd
