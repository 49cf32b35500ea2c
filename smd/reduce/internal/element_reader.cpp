#include "smd/reduce/internal/element_reader.h"

#include <cmath>
#include <limits>

#include "smd/tensor/widen.h"

namespace smd::internal {
namespace {

template <typename T>
constexpr DType kTypeOf = DType::float32;
template <>
constexpr DType kTypeOf<double> = DType::float64;
template <>
constexpr DType kTypeOf<int32_t> = DType::int32;
template <>
constexpr DType kTypeOf<int64_t> = DType::int64;
template <>
constexpr DType kTypeOf<uint64_t> = DType::uint64;

template <typename From, typename To>
const To* run(Convert<From, To> convert, ByteSpan raw, size_t count, To* to) {
  convert(reinterpret_cast<const From*>(raw.data()), count, to);
  return to;
}

const float* computable(const Kernels& kernels, DType dtype, ByteSpan raw, size_t count,
                        float* to) {
  switch (dtype) {
    case DType::float16: return run(kernels.from_float16, raw, count, to);
    case DType::bfloat16: return run(kernels.from_bfloat16, raw, count, to);
    case DType::float32: return reinterpret_cast<const float*>(raw.data());
    default: widen(dtype, raw, {to, count}); return to;
  }
}

// An infinite part makes the number infinite even if the other is NaN, as in C and NumPy.
double magnitude(float re, float im) {
  if (std::isinf(re) || std::isinf(im)) return std::numeric_limits<double>::infinity();
  const auto a = static_cast<double>(re);
  const auto b = static_cast<double>(im);
  return std::sqrt(a * a + b * b);
}

double magnitude(double re, double im) { return std::hypot(re, im); }

template <typename Part>
const double* magnitudes(ByteSpan raw, size_t count, double* to) {
  const auto* parts = reinterpret_cast<const Part*>(raw.data());
  for (size_t i = 0; i < count; ++i) to[i] = magnitude(parts[2 * i], parts[2 * i + 1]);
  return to;
}

const double* computable(const Kernels&, DType dtype, ByteSpan raw, size_t count, double* to) {
  switch (dtype) {
    case DType::complex64: return magnitudes<float>(raw, count, to);
    case DType::complex128: return magnitudes<double>(raw, count, to);
    default: return reinterpret_cast<const double*>(raw.data());
  }
}

const int32_t* computable(const Kernels& kernels, DType dtype, ByteSpan raw, size_t count,
                          int32_t* to) {
  switch (dtype) {
    case DType::int8: return run(kernels.from_int8, raw, count, to);
    case DType::int16: return run(kernels.from_int16, raw, count, to);
    case DType::uint8: return run(kernels.from_uint8, raw, count, to);
    case DType::uint16: return run(kernels.from_uint16, raw, count, to);
    case DType::boolean: return run(kernels.from_boolean, raw, count, to);
    default: return reinterpret_cast<const int32_t*>(raw.data());
  }
}

const int64_t* computable(const Kernels& kernels, DType dtype, ByteSpan raw, size_t count,
                          int64_t* to) {
  if (dtype == DType::uint32) return run(kernels.from_uint32, raw, count, to);
  return reinterpret_cast<const int64_t*>(raw.data());
}

const uint64_t* computable(const Kernels&, DType, ByteSpan raw, size_t, uint64_t*) {
  return reinterpret_cast<const uint64_t*>(raw.data());
}

}  // namespace

template <typename T>
bool ElementReader<T>::as_they_are() const {
  return exponent_ == 0 && dtype_ == kTypeOf<T>;
}

template <typename T>
std::span<const T> ElementReader<T>::next(size_t most) {
  const ByteSpan raw = blocks_.next(as_they_are() ? most : kBlockElements);
  const size_t count = raw.size() / size_of(dtype_);
  return {widened(raw, count), count};
}

template <typename T>
const T* ElementReader<T>::widened(ByteSpan raw, size_t count) {
  const T* elements = computable(kernels_, dtype_, raw, count, wide_);
  if constexpr (std::is_same_v<T, double>) {
    if (exponent_ != 0) {
      kernels_.scale(elements, count, exponent_, wide_);
      return wide_;
    }
  }
  return elements;
}

template class ElementReader<float>;
template class ElementReader<double>;
template class ElementReader<int32_t>;
template class ElementReader<int64_t>;
template class ElementReader<uint64_t>;

}  // namespace smd::internal
