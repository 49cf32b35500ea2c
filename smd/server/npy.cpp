#include "smd/server/npy.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "smd/tensor/widen.h"

namespace smd::server {
namespace {

std::string description(DType dtype) {
  if (is_stored_widened(dtype)) dtype = DType::float32;
  const DTypeInfo& info = info_of(dtype);
  char kind = 'f';
  switch (info.kind) {
    case DTypeKind::floating: kind = 'f'; break;
    case DTypeKind::signed_integer: kind = 'i'; break;
    case DTypeKind::unsigned_integer: kind = 'u'; break;
    case DTypeKind::boolean: kind = 'b'; break;
    case DTypeKind::complex: kind = 'c'; break;
    case DTypeKind::string: return {};
  }
  return fmt::format("{}{}{}", info.size_bytes == 1 ? '|' : '<', kind, info.size_bytes);
}

}  // namespace

Result<std::string> npy_file(const TensorView& tensor) {
  constexpr size_t kAlignment = 64;
  constexpr size_t kPrefix = 10;
  const std::string descr = description(tensor.dtype);
  if (descr.empty()) {
    return Error{ErrorCode::unsupported, "A tensor of texts cannot be had as a NumPy file."};
  }
  std::string shape;
  for (const int64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string head =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  head.resize((kPrefix + head.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kPrefix - 1,
              ' ');
  head += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(head.size() & 0xFF);
  out += static_cast<char>(head.size() >> 8);
  out += head;
  const size_t begin = out.size();
  const auto bytes = static_cast<size_t>(tensor.size_bytes());
  if (!is_stored_widened(tensor.dtype)) {
    out.resize(begin + bytes);
    gather(tensor, 0, std::as_writable_bytes(std::span(out)).subspan(begin));
    return out;
  }
  std::vector<std::byte> narrow(bytes);
  gather(tensor, 0, narrow);
  std::vector<float> wide(static_cast<size_t>(tensor.size()));
  widen(tensor.dtype, narrow, wide);
  out.append(as_text(std::as_bytes(std::span(wide))));
  return out;
}

}  // namespace smd::server
