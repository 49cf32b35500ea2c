#pragma once

// A tensor of libtorch as memory that the core can read: the tensor's own memory, with its strides,
// wherever that is possible. Sparse, quantised and conjugated tensors become plain ones first, and
// tensors on a device are copied to the host, which waits for the device.

#include <torch/torch.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "smd/smd.h"

namespace smdebug::torch_adapter {

// Sparse tensors become dense up to this size.
inline constexpr int64_t kSparseDenseLimitBytes = 64 << 20;

inline std::optional<smd::DType> dtype_of(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat16: return smd::DType::float16;
    case torch::kFloat32: return smd::DType::float32;
    case torch::kFloat64: return smd::DType::float64;
    case torch::kBFloat16: return smd::DType::bfloat16;
    case torch::kFloat8_e4m3fn: return smd::DType::float8_e4m3fn;
    case torch::kFloat8_e5m2: return smd::DType::float8_e5m2;
    case torch::kInt8: return smd::DType::int8;
    case torch::kInt16: return smd::DType::int16;
    case torch::kInt32: return smd::DType::int32;
    case torch::kInt64: return smd::DType::int64;
    case torch::kUInt8: return smd::DType::uint8;
    case torch::kUInt16: return smd::DType::uint16;
    case torch::kUInt32: return smd::DType::uint32;
    case torch::kUInt64: return smd::DType::uint64;
    case torch::kBool: return smd::DType::boolean;
    case torch::kComplexFloat: return smd::DType::complex64;
    case torch::kComplexDouble: return smd::DType::complex128;
    default: return std::nullopt;
  }
}

inline smd::Error unreadable(std::string message) {
  return {smd::ErrorCode::unsupported, std::move(message)};
}

// Keeps the tensor alive. Valid while the tensor's memory is not resized.
class HostTensor final {
 public:
  // Of a tensor that plain_parts() gave. unsupported: why there is nothing to read.
  static smd::Result<HostTensor> of(torch::Tensor tensor) {
    const auto dtype = dtype_of(tensor.scalar_type());
    if (!dtype) {
      return unreadable(std::string("elements of the type ") + torch::toString(tensor.dtype()) +
                        " cannot be saved.");
    }
    HostTensor made;
    if (!tensor.is_contiguous()) {
      for (const int64_t stride : tensor.strides()) {
        made.strides_bytes_.push_back(stride * static_cast<int64_t>(tensor.element_size()));
      }
    }
    if (tensor.numel() > 0 && tensor.const_data_ptr() == nullptr) {
      return unreadable("its memory was released.");
    }
    made.dtype_ = *dtype;
    made.tensor_ = std::move(tensor);
    return made;
  }

  // Points into this object.
  smd::TensorView view() const {
    const auto shape = tensor_.sizes();
    return {.data = tensor_.const_data_ptr(),
            .dtype = dtype_,
            .shape = {shape.data(), shape.size()},
            .strides_bytes = strides_bytes_};
  }

 private:
  HostTensor() = default;

  torch::Tensor tensor_;
  smd::DType dtype_ = smd::DType::float32;
  std::vector<int64_t> strides_bytes_;
};

// The suffix of a name, and a tensor in host memory.
using Part = std::pair<std::string, torch::Tensor>;

inline bool is_plain(const torch::Tensor& tensor) {
  return tensor.layout() == torch::kStrided && tensor.device().is_cpu() && !tensor.is_conj() &&
         !tensor.is_neg() && !tensor.is_quantized() && !tensor.is_nested();
}

// The tensor as one or two that can be read. May throw what libtorch throws.
inline smd::Result<std::vector<Part>> plain_parts(const torch::Tensor& tensor) {
  if (!tensor.defined()) return unreadable("it is an undefined tensor.");
  if (is_plain(tensor)) return std::vector<Part>{{"", tensor}};
  const torch::NoGradGuard no_grad;
  if (tensor.is_meta()) return unreadable("it has no memory.");
  if (tensor.is_nested()) return unreadable("it is a nested tensor.");
  torch::Tensor plain = tensor.detach();
  const int64_t dense_bytes = plain.numel() * static_cast<int64_t>(plain.element_size());
  if (plain.layout() == torch::kSparse) {
    plain = plain.coalesce();
    if (dense_bytes > kSparseDenseLimitBytes) {
      return std::vector<Part>{{"/indices", plain.indices().cpu()},
                               {"/values", plain.values().cpu()}};
    }
    plain = plain.to_dense();
  } else if (plain.layout() != torch::kStrided) {
    if (plain.layout() != torch::kMkldnn && dense_bytes > kSparseDenseLimitBytes) {
      return unreadable("it is sparse and too large to be made dense.");
    }
    plain = plain.to_dense();
  }
  if (plain.is_quantized()) plain = plain.dequantize();
  return std::vector<Part>{{"", plain.cpu().resolve_conj().resolve_neg()}};
}

}  // namespace smdebug::torch_adapter
