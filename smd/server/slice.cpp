#include "smd/server/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace smd::server {
namespace {

// Positions beyond this are beyond every tensor; sums of two of them do not overflow.
constexpr int64_t kMost = int64_t{1} << 61;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Result<std::optional<int64_t>> parse_position(std::string_view text, std::string_view place) {
  if (text.empty()) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) value = text.front() == '-' ? -kMost : kMost;
  if ((error != std::errc() && error != std::errc::result_out_of_range) ||
      end != text.data() + text.size()) {
    return wrong(fmt::format(
        "The slice has '{}', but a place is a number or a range such as 2:10 or ::4.", place));
  }
  return std::optional(std::clamp(value, -kMost, kMost));
}

Result<SlicePlace> parse_place(std::string_view place, int64_t extent) {
  const size_t first_colon = place.find(':');
  if (first_colon == std::string_view::npos) {
    SMD_TRY(const auto position, parse_position(place, place));
    if (!position) return wrong("A place of the slice is empty; ':' takes a dimension whole.");
    const int64_t at = *position < 0 ? *position + extent : *position;
    if (at < 0 || at >= extent) {
      return wrong(fmt::format(
          "The slice has the position {}, which is outside of a dimension of {}.", place, extent));
    }
    return SlicePlace{.first = at, .count = 1, .is_dropped = true};
  }
  const size_t second_colon = place.find(':', first_colon + 1);
  const std::string_view begin_text = place.substr(0, first_colon);
  const std::string_view end_text =
      place.substr(first_colon + 1, std::min(second_colon, place.size()) - first_colon - 1);
  const std::string_view step_text =
      second_colon == std::string_view::npos ? std::string_view() : place.substr(second_colon + 1);
  SMD_TRY(const auto begin, parse_position(begin_text, place));
  SMD_TRY(const auto end, parse_position(end_text, place));
  SMD_TRY(const auto step, parse_position(step_text, place));
  if (step && *step < 1) {
    return wrong(
        fmt::format("The slice has the step {} in '{}', but steps are at least 1.", *step, place));
  }
  const auto cut = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t from = cut(begin.value_or(0));
  const int64_t to = cut(end.value_or(extent));
  const int64_t by = step.value_or(1);
  // by is at most 2^61 and to at most 2^62.
  return SlicePlace{.first = from, .count = to > from ? (to - from - 1) / by + 1 : 0, .step = by};
}

}  // namespace

Result<std::vector<SlicePlace>> parse_slice(std::string_view text, const Shape& shape) {
  std::vector<SlicePlace> out;
  while (!text.empty()) {
    if (out.size() == shape.size()) {
      return wrong(
          fmt::format("The slice has more places than the {} dimensions of the shape [{}].",
                      shape.size(), fmt::join(shape, ", ")));
    }
    const size_t end = std::min(text.find(','), text.size());
    SMD_TRY(const SlicePlace place, parse_place(text.substr(0, end), shape[out.size()]));
    out.push_back(place);
    if (end + 1 == text.size()) {
      return wrong("The slice ends with a comma.");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (out.size() < shape.size()) out.push_back({.count = shape[out.size()]});
  return out;
}

std::string slice_text(const std::vector<SlicePlace>& places) {
  std::string out;
  for (const SlicePlace& place : places) {
    if (!out.empty()) out += ',';
    if (place.is_dropped) {
      out += fmt::format("{}", place.first);
      continue;
    }
    const int64_t end =
        place.count == 0 ? place.first : place.first + (place.count - 1) * place.step + 1;
    out += fmt::format("{}:{}", place.first, end);
    if (place.step != 1) out += fmt::format(":{}", place.step);
  }
  return out;
}

Shape slice_shape(const std::vector<SlicePlace>& places) {
  Shape out;
  for (const SlicePlace& place : places) {
    if (!place.is_dropped) out.push_back(place.count);
  }
  return out;
}

TensorView slice_view(const TensorView& whole, const std::vector<SlicePlace>& places, Shape& shape,
                      std::vector<int64_t>& strides_bytes) {
  shape = slice_shape(places);
  strides_bytes.clear();
  auto stride = static_cast<int64_t>(size_of(whole.dtype));
  int64_t offset = 0;
  for (size_t i = places.size(); i-- > 0;) {
    offset += places[i].count == 0 ? 0 : places[i].first * stride;
    // A step beyond the extent is never taken.
    if (!places[i].is_dropped) {
      strides_bytes.push_back(places[i].count > 1 ? places[i].step * stride : 0);
    }
    stride *= whole.shape[i];
  }
  std::ranges::reverse(strides_bytes);
  return {.data = static_cast<const std::byte*>(whole.data) + offset,
          .dtype = whole.dtype,
          .shape = shape,
          .strides_bytes = strides_bytes};
}

}  // namespace smd::server
