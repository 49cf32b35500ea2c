#include "smd/reduce/result_types.h"

namespace smd {

DType magnitude_type(DType dtype) {
  switch (dtype) {
    case DType::int8: return DType::uint8;
    case DType::int16: return DType::uint16;
    case DType::int32: return DType::uint32;
    case DType::int64: return DType::uint64;
    default: return dtype;
  }
}

DType sum_type(DType dtype) {
  return info_of(dtype).kind == DTypeKind::unsigned_integer ? DType::uint64 : DType::int64;
}

DType real_type(DType dtype) {
  switch (info_of(dtype).kind) {
    case DTypeKind::floating: return dtype == DType::float64 ? DType::float64 : DType::float32;
    case DTypeKind::complex: return dtype == DType::complex128 ? DType::float64 : DType::float32;
    default: return DType::float64;
  }
}

}  // namespace smd
