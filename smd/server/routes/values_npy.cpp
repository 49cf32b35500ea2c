#include <fmt/format.h>

#include "smd/server/chosen_value.h"
#include "smd/server/npy.h"
#include "smd/server/route.h"
#include "smd/server/run_list.h"

namespace smd::server::route_list {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;

Result<std::string> body(const ChosenValue& asked) {
  SMD_TRY(const TensorValue value, read_value(asked));
  if (value.dtype == DType::string) {
    return Error{ErrorCode::invalid_argument,
                 "The tensor holds texts, which cannot be had as a NumPy file; ask for values."};
  }
  SMD_TRY(const auto places, parse_slice(asked.slice, value.shape));
  Shape shape;
  std::vector<int64_t> strides;
  const TensorView view = slice_view(value.view(), places, shape, strides);
  if (view.size_bytes() > kMostBytes) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The slice has {} bytes, but at most {} can be had at once; choose a "
                             "part such as slice=0.",
                             view.size_bytes(), kMostBytes)};
  }
  return npy_file(view);
}

}  // namespace

extern const Route values_npy;
const Route values_npy = {
    .path = "/api/runs/{run}/values.npy",
    .parameters = kValueParameters,
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(ChosenValue asked, choose_value(question));
      const std::string& name = asked.chosen.facts->snapshot->names().tensors[asked.tensor];
      return Answer{.version = asked.chosen.version(),
                    .content_type = kBinaryType,
                    .body = [asked] { return body(asked); },
                    .is_kept = false,
                    .file_name = fmt::format("{}_{}.npy", slug_of(name), asked.step.step)};
    },
};

}  // namespace smd::server::route_list
