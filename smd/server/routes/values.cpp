#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/rules/elements.h"
#include "smd/rules/hit.h"
#include "smd/server/chosen_value.h"
#include "smd/server/route.h"

namespace smd::server::route_list {
namespace {

constexpr int64_t kMostElements = 262'144;

// Integers beyond 2^53 keep their digits.
template <typename T>
void add_integers(ByteSpan bytes, Json& out) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) out.push_back(load_le<T>(bytes.data() + i));
}

bool add_exact(DType dtype, ByteSpan bytes, Json& out) {
  switch (dtype) {
    case DType::int64: add_integers<int64_t>(bytes, out); return true;
    case DType::uint64: add_integers<uint64_t>(bytes, out); return true;
    case DType::boolean:
      for (const std::byte one : bytes) out.push_back(one != std::byte{0});
      return true;
    default: return false;
  }
}

Result<std::string> body(const ChosenValue& asked) {
  SMD_TRY(const TensorValue value, read_value(asked));
  const RunFacts& facts = *asked.chosen.facts;
  Json values = Json::array();
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  int64_t nans = 0;
  int64_t infs = 0;
  std::string slice;
  Shape slice_shape;
  if (value.dtype == DType::string) {
    for (const std::string& text : value.strings) {
      if (values.size() == static_cast<size_t>(kMostElements)) break;
      values.push_back(text);
    }
    slice_shape = {static_cast<int64_t>(values.size())};
  } else {
    SMD_TRY(const auto places, parse_slice(asked.slice, value.shape));
    slice = slice_text(places);
    std::vector<int64_t> strides;
    const TensorView view = slice_view(value.view(), places, slice_shape, strides);
    if (view.size() > kMostElements) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The slice has {} elements, but at most {} can be had as JSON; "
                               "choose a part such as slice=0 or slice=::8, or values.npy.",
                               view.size(), kMostElements)};
    }
    Bytes bytes(static_cast<size_t>(view.size_bytes()));
    gather(view, 0, bytes);
    const TensorView part{.data = bytes.data(), .dtype = value.dtype, .shape = slice_shape};
    SMD_TRY(const auto numbers, rules::to_doubles(part));
    for (const double number : numbers) {
      if (std::isfinite(number)) {
        least = std::min(least, number);
        most = std::max(most, number);
      } else {
        ++(std::isnan(number) ? nans : infs);
      }
    }
    const bool is_complex = info_of(value.dtype).kind == DTypeKind::complex;
    if (!add_exact(value.dtype, bytes, values)) {
      for (size_t i = 0; i < numbers.size(); i += is_complex ? 2 : 1) {
        values.push_back(
            is_complex ? Json::array({rules::json_of(numbers[i]), rules::json_of(numbers[i + 1])})
                       : rules::json_of(numbers[i]));
      }
    }
  }
  const Step step = asked.mode == Mode::global ? asked.step.step : asked.step.mode_step;
  return body_of({{"revision", facts.revision},
                  {"tensor", facts.snapshot->names().tensors[asked.tensor]},
                  {"id", asked.tensor},
                  {"step", step},
                  {"global_step", asked.step.step},
                  {"mode", name_of(asked.mode)},
                  {"worker", asked.worker},
                  {"wall_secs", value.wall_secs > 0 ? finite(value.wall_secs) : Json(nullptr)},
                  {"dtype", name_of(value.dtype)},
                  {"shape", value.shape},
                  {"slice", slice},
                  {"slice_shape", slice_shape},
                  {"values", std::move(values)},
                  {"min", finite(least)},
                  {"max", finite(most)},
                  {"nans", nans},
                  {"infs", infs}});
}

}  // namespace

extern const Route values;
const Route values = {
    .path = "/api/runs/{run}/values",
    .parameters = kValueParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(ChosenValue asked, choose_value(question));
      std::string version = asked.chosen.version();
      return Answer{.version = std::move(version), .body = [asked] { return body(asked); }};
    },
};

}  // namespace smd::server::route_list
