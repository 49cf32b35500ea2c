#include "python/src/trial_arg.h"

#include <fmt/format.h>

#include "python/src/errors.h"
#include "python/src/values.h"
#include "smd/base/nearest.h"

namespace smdebug {

std::shared_ptr<smd::Trial> to_trial(nb::handle value) {
  std::shared_ptr<smd::Trial> trial;
  if (!nb::try_cast(value, trial) || !trial) {
    raise("SMDebugTypeError", fmt::format("A trial is expected, not {}.", describe(value)));
  }
  return trial;
}

std::vector<uint32_t> tensor_numbers(const smd::Snapshot& snapshot,
                                     const std::vector<std::string>& names) {
  std::vector<uint32_t> out;
  for (const std::string& name : names) {
    if (const auto id = snapshot.find_tensor(name)) {
      out.push_back(*id);
      continue;
    }
    std::vector<std::string_view> known;
    for (uint32_t i = 0; i < snapshot.names().tensors.size(); ++i) {
      known.push_back(snapshot.names().tensors[i]);
    }
    raise({smd::ErrorCode::invalid_argument,
           fmt::format("There is no tensor '{}'.{}", name, smd::did_you_mean(name, known))});
  }
  return out;
}

}  // namespace smdebug
