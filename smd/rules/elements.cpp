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

bool is_complex(const TensorView& tensor) {
  return info_of(tensor.dtype).kind == DTypeKind::complex;
}

// Reads a tensor as doubles, block by block.
class Reader final {
 public:
  // Borrows the tensor. `parts`: doubles per element; 2 for a real tensor adds imaginary zeros.
  Reader(const TensorView& tensor, int64_t parts)
      : tensor_(tensor),
        parts_(parts),
        is_padded_(parts == 2 && !is_complex(tensor)),
        is_contiguous_(tensor.is_contiguous()),
        is_plain_(is_contiguous_ && !is_padded_ &&
                  (tensor.dtype == DType::float64 || tensor.dtype == DType::complex128) &&
                  reinterpret_cast<uintptr_t>(tensor.data) % alignof(double) == 0) {
    if (is_plain_) return;
    numbers_.resize(static_cast<size_t>(kBlock * parts));
    if (!is_contiguous_) bytes_.resize(static_cast<size_t>(kBlock) * size_of(tensor.dtype));
  }

  // At most kBlock elements; good until the next call.
  std::span<const double> read(int64_t first, int64_t elements) {
    const auto at = static_cast<size_t>(first);
    const auto count = static_cast<size_t>(elements);
    const auto parts = static_cast<size_t>(parts_);
    if (is_plain_) return {static_cast<const double*>(tensor_.data) + at * parts, count * parts};
    const size_t size = size_of(tensor_.dtype);
    std::span<const std::byte> block;
    if (is_contiguous_) {
      block = tensor_.bytes().subspan(at * size, count * size);
    } else {
      gather(tensor_, first, std::span(bytes_).first(count * size));
      block = std::span(bytes_).first(count * size);
    }
    const std::span<double> out(numbers_.data(), count * parts);
    convert(tensor_.dtype, block, is_padded_ ? out.first(count) : out);
    if (is_padded_) {
      for (size_t i = count; i-- > 0;) {
        out[2 * i] = out[i];
        out[2 * i + 1] = 0;
      }
    }
    return out;
  }

 private:
  const TensorView& tensor_;
  const int64_t parts_;
  const bool is_padded_;
  const bool is_contiguous_;
  const bool is_plain_;  // its memory is what is asked for
  std::vector<std::byte> bytes_;
  std::vector<double> numbers_;
};

Status check_numbers(const TensorView& tensor) {
  if (tensor.dtype == DType::string) {
    return Error{ErrorCode::unsupported, "A tensor of strings has no numbers."};
  }
  return check(tensor);
}

}  // namespace

Status for_each_block(const TensorView& tensor,
                      const std::function<void(int64_t, std::span<const double>)>& f) {
  SMD_RETURN_IF_ERROR(check_numbers(tensor));
  const int64_t parts = is_complex(tensor) ? 2 : 1;
  const int64_t size = tensor.size();
  Reader reader(tensor, parts);
  for (int64_t first = 0; first < size; first += kBlock) {
    f(first * parts, reader.read(first, std::min(kBlock, size - first)));
  }
  return {};
}

Status for_each_pair(
    const TensorView& a, const TensorView& b,
    const std::function<bool(int64_t, std::span<const double>, std::span<const double>)>& f) {
  SMD_RETURN_IF_ERROR(check_numbers(a));
  SMD_RETURN_IF_ERROR(check_numbers(b));
  const int64_t size = a.size();
  SMD_CHECK(size == b.size());
  const int64_t parts = is_complex(a) || is_complex(b) ? 2 : 1;
  Reader left(a, parts);
  Reader right(b, parts);
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t count = std::min(kBlock, size - first);
    if (!f(first * parts, left.read(first, count), right.read(first, count))) return {};
  }
  return {};
}

Result<std::vector<double>> to_doubles(const TensorView& tensor) {
  std::vector<double> out;
  SMD_RETURN_IF_ERROR(for_each_block(tensor, [&](int64_t, std::span<const double> numbers) {
    if (out.empty()) out.reserve(static_cast<size_t>(tensor.size()) * (is_complex(tensor) ? 2 : 1));
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
  const int64_t parts = is_complex(tensor) ? 2 : 1;
  SMD_RETURN_IF_ERROR(for_each_block(tensor, [&](int64_t first, std::span<const double> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double x = numbers[i];
      if (std::isfinite(x)) {
        out.largest_finite = std::max(out.largest_finite, std::fabs(x));
        continue;
      }
      ++(std::isnan(x) ? out.nan_count : x > 0 ? out.positive_inf_count : out.negative_inf_count);
      const int64_t index = (first + static_cast<int64_t>(i)) / parts;
      if (out.first_index < 0) out.first_index = index;
    }
  }));
  return out;
}

}  // namespace smd::rules
