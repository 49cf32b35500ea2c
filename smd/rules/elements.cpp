#include "smd/rules/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "smd/tensor/widen.h"

namespace smd::rules {
namespace {

constexpr int64_t kBlock = 4096;

template <typename T>
void convert(const std::byte* from, std::span<double> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<double>(element);
  }
}

void convert_small(DType dtype, std::span<const std::byte> from, std::span<double> to) {
  std::vector<float> wide(to.size());
  widen(dtype, from, wide);
  std::copy(wide.begin(), wide.end(), to.begin());
}

void convert(DType dtype, std::span<const std::byte> bytes, std::span<double> to) {
  const std::byte* from = bytes.data();
  switch (dtype) {
    case DType::float16:
      for (size_t i = 0; i < to.size(); ++i) {
        uint16_t half;
        std::memcpy(&half, from + i * sizeof(half), sizeof(half));
        to[i] = half_to_float(half);
      }
      return;
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2: return convert_small(dtype, bytes, to);
    case DType::float32:
    case DType::complex64: return convert<float>(from, to);
    case DType::float64:
    case DType::complex128: return convert<double>(from, to);
    case DType::int8: return convert<int8_t>(from, to);
    case DType::int16: return convert<int16_t>(from, to);
    case DType::int32: return convert<int32_t>(from, to);
    case DType::int64: return convert<int64_t>(from, to);
    case DType::uint8:
    case DType::boolean: return convert<uint8_t>(from, to);
    case DType::uint16: return convert<uint16_t>(from, to);
    case DType::uint32: return convert<uint32_t>(from, to);
    case DType::uint64: return convert<uint64_t>(from, to);
    case DType::string: return;
  }
}

}  // namespace

Status for_each_block(const TensorView& tensor,
                      const std::function<void(int64_t, std::span<const double>)>& f) {
  if (tensor.dtype == DType::string) {
    return Error{ErrorCode::unsupported, "A tensor of strings has no numbers."};
  }
  SMD_RETURN_IF_ERROR(check(tensor));
  const bool is_complex = info_of(tensor.dtype).kind == DTypeKind::complex;
  const int64_t parts = is_complex ? 2 : 1;
  const int64_t size = tensor.size();
  std::vector<std::byte> bytes(static_cast<size_t>(kBlock) * size_of(tensor.dtype));
  std::vector<double> numbers(static_cast<size_t>(kBlock * parts));
  for (int64_t first = 0; first < size; first += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, size - first));
    const std::span<std::byte> block(bytes.data(), count * size_of(tensor.dtype));
    gather(tensor, first, block);
    const std::span<double> out(numbers.data(), count * static_cast<size_t>(parts));
    convert(tensor.dtype, block, out);
    f(first * parts, out);
  }
  return {};
}

Result<std::vector<double>> to_doubles(const TensorView& tensor) {
  std::vector<double> out;
  SMD_RETURN_IF_ERROR(for_each_block(tensor, [&](int64_t, std::span<const double> numbers) {
    out.insert(out.end(), numbers.begin(), numbers.end());
  }));
  return out;
}

std::optional<double> max_finite(DType dtype) {
  switch (dtype) {
    case DType::float16: return 65504.0;
    case DType::bfloat16: return 0x1.FEp127;
    case DType::float8_e4m3fn: return 448.0;
    case DType::float8_e5m2: return 57344.0;
    case DType::float32:
    case DType::complex64: return std::numeric_limits<float>::max();
    case DType::float64:
    case DType::complex128: return std::numeric_limits<double>::max();
    default: return std::nullopt;
  }
}

Result<SpecialElements> find_special(const TensorView& tensor) {
  SpecialElements out;
  const bool is_complex = info_of(tensor.dtype).kind == DTypeKind::complex;
  SMD_RETURN_IF_ERROR(for_each_block(tensor, [&](int64_t first, std::span<const double> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double x = numbers[i];
      if (std::isfinite(x)) {
        out.largest_finite = std::max(out.largest_finite, std::fabs(x));
        continue;
      }
      ++(std::isnan(x) ? out.nan_count : x > 0 ? out.positive_inf_count : out.negative_inf_count);
      const int64_t index = (first + static_cast<int64_t>(i)) / (is_complex ? 2 : 1);
      if (out.first_index < 0) out.first_index = index;
    }
  }));
  return out;
}

}  // namespace smd::rules
