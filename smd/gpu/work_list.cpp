#include "smd/gpu/work_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "smd/gpu/survey.h"

namespace smd::gpu {
namespace {

struct Axis {
  int64_t extent = 0;
  int64_t stride = 0;  // in elements, not negative
};

// The elements of a tensor in any order: statistics do not depend on it.
struct Elements {
  uint64_t data = 0;
  std::vector<Axis> axes;  // the longest stride first; empty: no gaps

  bool is_dense() const { return axes.empty() || (axes.size() == 1 && axes[0].stride == 1); }
};

Error refused(std::string why) { return {ErrorCode::unsupported, std::move(why)}; }

Result<Elements> elements_of(const TensorView& tensor) {
  const auto item = static_cast<int64_t>(size_of(tensor.dtype));
  Elements out{.data = reinterpret_cast<uint64_t>(tensor.data), .axes = {}};
  if (out.data % static_cast<uint64_t>(item) != 0) {
    return refused("The tensor does not begin at a whole element.");
  }
  if (tensor.is_contiguous()) return out;
  int64_t dense = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    const int64_t extent = tensor.shape[axis];
    int64_t bytes = tensor.strides_bytes.empty() ? dense * item : tensor.strides_bytes[axis];
    dense *= extent;
    if (extent == 1) continue;
    if (bytes % item != 0) {
      return refused(fmt::format("A stride of {} bytes is no multiple of an element.", bytes));
    }
    if (bytes < 0) {
      out.data -= static_cast<uint64_t>(-bytes) * static_cast<uint64_t>(extent - 1);
      bytes = -bytes;
    }
    out.axes.push_back({.extent = extent, .stride = bytes / item});
  }
  std::stable_sort(out.axes.begin(), out.axes.end(),
                   [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  std::vector<Axis> joined;
  for (const Axis& axis : out.axes) {
    if (!joined.empty() && joined.back().stride == axis.extent * axis.stride) {
      joined.back() = {.extent = joined.back().extent * axis.extent, .stride = axis.stride};
    } else {
      joined.push_back(axis);
    }
  }
  out.axes = std::move(joined);
  if (!out.is_dense() && out.axes.size() > kMostSurveyedAxes) {
    return refused(fmt::format("The tensor has {} axes with gaps between them, more than {}.",
                               out.axes.size(), kMostSurveyedAxes));
  }
  return out;
}

StridedItem strided_item(const Elements& elements, int64_t count, uint32_t chunk_bytes) {
  StridedItem item{};
  item.data = elements.data;
  item.count = static_cast<U64>(count);
  item.axes = static_cast<U32>(elements.axes.size());
  item.chunk_bytes = chunk_bytes;
  for (size_t axis = 0; axis < elements.axes.size(); ++axis) {
    item.extent[axis] = elements.axes[axis].extent;
    item.stride[axis] = elements.axes[axis].stride;
  }
  return item;
}

// Enough chunks to keep every device busy, and no more: each costs work when they are joined.
uint32_t chunk_bytes_for(uint64_t bytes) {
  constexpr uint64_t kEnough = 1536;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::bit_floor(bytes / kEnough), kLeastChunkBytes, kMostChunkBytes));
}

uint32_t blocks_of(int64_t bytes, uint32_t chunk_bytes) {
  return static_cast<uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes);
}

}  // namespace

Status check_surveyable(const TensorView& tensor) {
  if (!can_survey(tensor.dtype)) {
    return refused(
        fmt::format("Elements of type {} are not read on a device.", name_of(tensor.dtype)));
  }
  if (tensor.swapped) return refused("The elements are in the other byte order.");
  SMD_RETURN_IF_ERROR(check(tensor));
  if (tensor.size() == 0) return {};
  SMD_TRY([[maybe_unused]] const Elements elements, elements_of(tensor));
  return {};
}

Result<WorkList> WorkList::of(std::span<const TensorView> tensors, bool absolute_deviations) {
  WorkList out;
  uint64_t bytes = 0;
  for (const TensorView& tensor : tensors) {
    SMD_RETURN_IF_ERROR(check_surveyable(tensor));
    bytes += static_cast<uint64_t>(tensor.size_bytes());
  }
  const uint32_t chunk_bytes = chunk_bytes_for(bytes);
  std::map<DType, size_t> open;  // the launch that takes more tensors of this type
  for (const TensorView& tensor : tensors) {
    PartialRange& range = out.ranges.emplace_back();
    const int64_t count = tensor.size();
    if (count == 0) continue;
    SMD_TRY(const Elements elements, elements_of(tensor));
    const uint32_t blocks = blocks_of(tensor.size_bytes(), chunk_bytes);
    Launch next{
        .dtype = tensor.dtype, .absolute_deviations = absolute_deviations, .blocks = blocks};
    if (!elements.is_dense()) {
      next.arguments = strided_item(elements, count, chunk_bytes);
      range = {.first = static_cast<uint32_t>(out.launches.size()), .count = blocks};
      out.launches.push_back(std::move(next));
      continue;
    }
    auto at = open.find(tensor.dtype);
    if (at != open.end() &&
        std::get<ItemList>(out.launches[at->second].arguments).count == kMostItems) {
      open.erase(at);
      at = open.end();
    }
    if (at == open.end()) {
      next.arguments = ItemList{.out = 0, .count = 0, .chunk_bytes = chunk_bytes, .items = {}};
      next.blocks = 0;
      at = open.emplace(tensor.dtype, out.launches.size()).first;
      out.launches.push_back(std::move(next));
    }
    Launch& launch = out.launches[at->second];
    auto& list = std::get<ItemList>(launch.arguments);
    list.items[list.count++] = {.data = elements.data,
                                .count = static_cast<U64>(count),
                                .first_block = launch.blocks,
                                .unused = 0};
    launch.blocks += blocks;
    // The number of the launch, for now; below the partial of its first block is added.
    range = {.first = static_cast<uint32_t>(at->second), .count = blocks};
  }
  std::vector<uint32_t> next_of(out.launches.size());
  for (size_t i = 0; i < out.launches.size(); ++i) {
    out.launches[i].first_partial = next_of[i] = out.partials;
    out.partials += out.launches[i].blocks;
  }
  for (PartialRange& range : out.ranges) {
    if (range.count == 0) continue;
    uint32_t& next = next_of[range.first];
    range.first = next;
    next += range.count;
  }
  return out;
}

}  // namespace smd::gpu
