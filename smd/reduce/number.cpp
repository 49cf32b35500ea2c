#include "smd/reduce/number.h"

namespace smd {

Number Number::real(DType dtype, double value) {
  Number out{.dtype = dtype};
  if (dtype == DType::float32) {
    store_le(out.bits.data(), static_cast<float>(value));
  } else {
    store_le(out.bits.data(), value);
  }
  return out;
}

Number Number::integer(DType dtype, uint64_t value) {
  Number out{.dtype = dtype};
  std::memcpy(out.bits.data(), &value, size_of(dtype));
  return out;
}

double Number::to_double() const {
  const std::byte* at = bits.data();
  switch (dtype) {
    case DType::float32:
      return static_cast<double>(load_le<float>(at));
    case DType::float64:
      return load_le<double>(at);
    case DType::int8:
      return load_le<int8_t>(at);
    case DType::int16:
      return load_le<int16_t>(at);
    case DType::int32:
      return load_le<int32_t>(at);
    case DType::int64:
      return static_cast<double>(load_le<int64_t>(at));
    case DType::uint16:
      return load_le<uint16_t>(at);
    case DType::uint32:
      return load_le<uint32_t>(at);
    case DType::uint64:
      return static_cast<double>(load_le<uint64_t>(at));
    default:
      return load_le<uint8_t>(at);
  }
}

}  // namespace smd
