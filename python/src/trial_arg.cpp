#include "python/src/trial_arg.h"

#include <fmt/format.h>

#include "python/src/errors.h"
#include "python/src/values.h"

namespace smdebug {

std::shared_ptr<smd::Trial> to_trial(nb::handle value) {
  std::shared_ptr<smd::Trial> trial;
  if (!nb::try_cast(value, trial) || !trial) {
    raise("SMDebugTypeError", fmt::format("A trial is expected, not {}.", describe(value)));
  }
  return trial;
}

}  // namespace smdebug
