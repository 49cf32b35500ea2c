#pragma once

// Which launches of the kernels of survey_kernel.h read a list of tensors: one per element type and
// some hundred tensors, and one per tensor with gaps. Plain value; reads no element.

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "smd/base/result.h"
#include "smd/gpu/survey_kernel.h"
#include "smd/tensor/tensor_view.h"

namespace smd::gpu {

struct Launch {
  DType dtype = DType::float32;
  bool absolute_deviations = false;
  // `out` is to be set to the partial number first_partial before the launch.
  std::variant<ItemList, StridedItem> arguments;
  uint32_t first_partial = 0;
  uint32_t blocks = 0;
};

// The partials of one tensor.
struct PartialRange {
  uint32_t first = 0;
  uint32_t count = 0;  // 0: the tensor has no elements
};

struct WorkList {
  std::vector<Launch> launches;
  std::vector<PartialRange> ranges;  // one per tensor, in the order of the list
  uint32_t partials = 0;

  // The views point to memory of a device. unsupported: an element type or a layout that no kernel
  // reads, see check_surveyable().
  static Result<WorkList> of(std::span<const TensorView> tensors, bool absolute_deviations);
};

// Whether a kernel can read the tensor; else the reason.
Status check_surveyable(const TensorView& tensor);

}  // namespace smd::gpu
