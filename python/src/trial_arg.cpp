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

std::shared_ptr<smd::Trial> open_trial(const std::string& path) {
  auto opened = [&] {
    const nb::gil_scoped_release release;
    return smd::Trial::open(path);
  }();
  return check(std::move(opened));
}

}  // namespace smdebug
