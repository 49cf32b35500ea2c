#include "smd/rules/unit_activity.h"

#include <algorithm>

#include "smd/rules/elements.h"

namespace smd::rules {
namespace {

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t out = 1;
  for (size_t i = begin; i < end; ++i) out *= shape[i];
  return out;
}

// Adds a block that begins at this position to the counts.
template <typename IsActive>
void add_block(int64_t position, std::span<const double> numbers, const UnitLayout& layout,
               std::vector<int64_t>& counts, IsActive&& is_active) {
  if (layout.inner == 1) {
    auto unit = static_cast<size_t>(position % layout.units);
    const auto units = static_cast<size_t>(layout.units);
    for (size_t at = 0; at < numbers.size(); unit = 0) {
      const size_t run = std::min(units - unit, numbers.size() - at);
      int64_t* const out = counts.data() + unit;
      const double* const in = numbers.data() + at;
      for (size_t i = 0; i < run; ++i) out[i] += is_active(in[i]);
      at += run;
    }
    return;
  }
  for (size_t at = 0; at < numbers.size();) {
    const int64_t here = position + static_cast<int64_t>(at);
    const auto left = static_cast<size_t>(layout.inner - here % layout.inner);
    const size_t run = std::min(left, numbers.size() - at);
    const double* const in = numbers.data() + at;
    int64_t sum = 0;
    for (size_t i = 0; i < run; ++i) sum += is_active(in[i]);
    counts[static_cast<size_t>(here / layout.inner % layout.units)] += sum;
    at += run;
  }
}

}  // namespace

bool has_order(DType dtype) {
  const DTypeKind kind = info_of(dtype).kind;
  return kind != DTypeKind::string && kind != DTypeKind::complex;
}

std::optional<UnitLayout> unit_layout(const Shape& shape, std::optional<int64_t> unit_axis) {
  const size_t rank = shape.size();
  if (!unit_axis) {
    if (rank < 2) return UnitLayout{.units = product(shape, 0, rank)};
    return UnitLayout{.outer = shape[0], .units = product(shape, 1, rank)};
  }
  const int64_t axis = *unit_axis < 0 ? *unit_axis + static_cast<int64_t>(rank) : *unit_axis;
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  return UnitLayout{
      .outer = product(shape, 0, at), .units = shape[at], .inner = product(shape, at + 1, rank)};
}

Result<std::vector<int64_t>> count_active(const TensorView& tensor, const UnitLayout& layout,
                                          const ActiveRange& range) {
  if (!has_order(tensor.dtype)) {
    return Error{ErrorCode::unsupported, "Strings and complex numbers have no order."};
  }
  std::vector<int64_t> counts(static_cast<size_t>(layout.units), 0);
  const double above = range.above;
  const double below = range.below.value_or(0);
  SMD_RETURN_IF_ERROR(for_each_block(tensor, [&](int64_t first, std::span<const double> numbers) {
    if (range.below) {
      add_block(first, numbers, layout, counts,
                [=](double x) { return static_cast<int64_t>((x > above) & (x < below)); });
    } else {
      add_block(first, numbers, layout, counts,
                [=](double x) { return static_cast<int64_t>(x > above); });
    }
  }));
  return counts;
}

}  // namespace smd::rules
