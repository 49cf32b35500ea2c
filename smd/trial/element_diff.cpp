#include "smd/trial/element_diff.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "smd/tensor/widen.h"

namespace smd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Blocks with the same bytes are passed over.
constexpr int64_t kBlock = 2048;

template <typename T>
bool is_nan(const T& x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x);
  } else if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(x.real()) || std::isnan(x.imag());
  }
}

template <typename T>
double to_double(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return std::hypot(static_cast<double>(x.real()), static_cast<double>(x.imag()));
  }
}

template <typename T>
double distance(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
  } else if constexpr (std::is_integral_v<T>) {
    // Exact where doubles of the two would be equal.
    const auto high = static_cast<uint64_t>(std::max(a, b));
    const auto low = static_cast<uint64_t>(std::min(a, b));
    return static_cast<double>(high - low);
  } else {
    return std::hypot(static_cast<double>(a.real()) - static_cast<double>(b.real()),
                      static_cast<double>(a.imag()) - static_cast<double>(b.imag()));
  }
}

double relative_of(double absolute, double magnitude, double a, double b) {
  if (std::isinf(magnitude)) return kInfinity;
  if (std::isinf(absolute)) return std::abs(a / magnitude - b / magnitude);
  return absolute / magnitude;
}

class Comparison final {
 public:
  explicit Comparison(const Tolerance& tolerance) : tolerance_(tolerance) {}

  template <typename T>
  void add(int64_t at, const T& a, const T& b) {
    if (a == b) return;
    const bool nan_a = is_nan(a);
    const bool nan_b = is_nan(b);
    if (nan_a || nan_b) {
      if (nan_a && nan_b) return;
      ++(nan_a ? out_.nan_only_in_a : out_.nan_only_in_b);
      out_.set_far_apart();
      differ(at, to_double(a), to_double(b), kInfinity);
      return;
    }
    const double x = to_double(a);
    const double y = to_double(b);
    const double absolute = distance(a, b);
    const double magnitude = std::max(std::abs(x), std::abs(y));
    const double relative = relative_of(absolute, magnitude, x, y);
    out_.max_absolute = std::max(out_.max_absolute, absolute);
    out_.max_relative = std::max(out_.max_relative, relative);
    const double allowed = std::max(tolerance_.absolute, tolerance_.relative * magnitude);
    if (std::isfinite(magnitude) && absolute <= allowed) return;
    differ(at, x, y, relative);
  }

  ElementDiff finish(int64_t elements) {
    out_.elements = elements;
    return out_;
  }

 private:
  void differ(int64_t at, double a, double b, double relative) {
    ++out_.differing;
    if (out_.first < 0) out_.first = at;
    if (out_.worst >= 0 && relative <= worst_relative_) return;
    worst_relative_ = relative;
    out_.worst = at;
    out_.worst_a = a;
    out_.worst_b = b;
  }

  const Tolerance tolerance_;
  ElementDiff out_;
  double worst_relative_ = 0;
};

// Calls compare(first, count) for blocks whose bytes differ.
template <typename Compare>
void for_each_block(const TensorView& a, const TensorView& b, Compare&& compare) {
  const ByteSpan left = a.bytes();
  const ByteSpan right = b.bytes();
  const auto size = static_cast<int64_t>(size_of(a.dtype));
  const int64_t elements = a.size();
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    const auto at = static_cast<size_t>(first * size);
    if (std::memcmp(left.data() + at, right.data() + at, static_cast<size_t>(count * size)) == 0) {
      continue;
    }
    compare(first, count);
  }
}

template <typename T>
void compare_as(const TensorView& a, const TensorView& b, Comparison& into) {
  const auto* left = static_cast<const std::byte*>(a.data);
  const auto* right = static_cast<const std::byte*>(b.data);
  for_each_block(a, b, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      const auto at = static_cast<size_t>(i) * sizeof(T);
      into.add(i, load_le<T>(left + at), load_le<T>(right + at));
    }
  });
}

void to_floats(const TensorView& tensor, int64_t first, std::span<float> out) {
  const size_t size = size_of(tensor.dtype);
  const ByteSpan bytes =
      tensor.bytes().subspan(static_cast<size_t>(first) * size, out.size() * size);
  if (tensor.dtype != DType::float16) return widen(tensor.dtype, bytes, out);
  for (size_t i = 0; i < out.size(); ++i) out[i] = half_to_float(load_le<uint16_t>(&bytes[i * 2]));
}

void compare_small_floats(const TensorView& a, const TensorView& b, Comparison& into) {
  std::array<float, kBlock> left;
  std::array<float, kBlock> right;
  for_each_block(a, b, [&](int64_t first, int64_t count) {
    const auto used = static_cast<size_t>(count);
    to_floats(a, first, std::span(left).first(used));
    to_floats(b, first, std::span(right).first(used));
    for (size_t i = 0; i < used; ++i) into.add(first + static_cast<int64_t>(i), left[i], right[i]);
  });
}

}  // namespace

ElementDiff compare_elements(const TensorView& a, const TensorView& b, const Tolerance& tolerance) {
  SMD_CHECK(a.dtype == b.dtype && a.size() == b.size());
  Comparison into(tolerance);
  switch (a.dtype) {
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2: compare_small_floats(a, b, into); break;
    case DType::float32: compare_as<float>(a, b, into); break;
    case DType::float64: compare_as<double>(a, b, into); break;
    case DType::int8: compare_as<int8_t>(a, b, into); break;
    case DType::int16: compare_as<int16_t>(a, b, into); break;
    case DType::int32: compare_as<int32_t>(a, b, into); break;
    case DType::int64: compare_as<int64_t>(a, b, into); break;
    case DType::boolean:
    case DType::uint8: compare_as<uint8_t>(a, b, into); break;
    case DType::uint16: compare_as<uint16_t>(a, b, into); break;
    case DType::uint32: compare_as<uint32_t>(a, b, into); break;
    case DType::uint64: compare_as<uint64_t>(a, b, into); break;
    case DType::complex64: compare_as<std::complex<float>>(a, b, into); break;
    case DType::complex128: compare_as<std::complex<double>>(a, b, into); break;
    case DType::string: SMD_CHECK(false); break;
  }
  return into.finish(a.size());
}

ElementDiff compare_numbers(double a, double b, const Tolerance& tolerance) {
  Comparison into(tolerance);
  into.add(0, a, b);
  return into.finish(1);
}

}  // namespace smd
