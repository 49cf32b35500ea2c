#include "smd/reduce/internal/blocks.h"
#include "smd/reduce/internal/reduce_with.h"

namespace smd {
namespace internal {
namespace {

template <typename Bits>
using AnyAbove = bool (*)(const Bits* block, size_t count, Bits limit);

// `infinity` holds the bits of the greatest value that is not NaN.
template <typename Bits>
bool any_nan(AnyAbove<Bits> any_above, ByteSpan block, Bits infinity) {
  return any_above(reinterpret_cast<const Bits*>(block.data()), block.size() / sizeof(Bits),
                   infinity);
}

bool any_nan(const Kernels& kernels, DType dtype, ByteSpan block) {
  switch (dtype) {
    case DType::float8_e4m3fn: return any_nan<int8_t>(kernels.any_above_8, block, 0x7e);
    case DType::float8_e5m2: return any_nan<int8_t>(kernels.any_above_8, block, 0x7c);
    case DType::float16: return any_nan<int16_t>(kernels.any_above_16, block, 0x7c00);
    case DType::bfloat16: return any_nan<int16_t>(kernels.any_above_16, block, 0x7f80);
    case DType::float32:
    case DType::complex64: return any_nan<int32_t>(kernels.any_above_32, block, 0x7f800000);
    default: return any_nan<int64_t>(kernels.any_above_64, block, 0x7ff0000000000000);
  }
}

}  // namespace

Result<bool> contains_nan_with(const Kernels& kernels, const TensorView& tensor) {
  SMD_RETURN_IF_ERROR(check(tensor));
  const DTypeKind kind = info_of(tensor.dtype).kind;
  if (kind != DTypeKind::floating && kind != DTypeKind::complex) return false;
  Blocks blocks(tensor);
  for (ByteSpan block = blocks.next(); !block.empty(); block = blocks.next()) {
    if (any_nan(kernels, tensor.dtype, block)) return true;
  }
  return false;
}

}  // namespace internal

Result<bool> contains_nan(const TensorView& tensor) {
  return internal::contains_nan_with(internal::best_kernels(), tensor);
}

}  // namespace smd
