// What a run consists of, as lists and tuples.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/trial_arg.h"
#include "smd/trial/catalog.h"

namespace smdebug {
namespace {

nb::object read(nb::handle trial_object) {
  const auto trial = to_trial(trial_object);
  smd::Result<smd::Catalog> found = [&] {
    const nb::gil_scoped_release released;
    return smd::read_catalog(*trial);
  }();
  const smd::Catalog catalog = check(std::move(found));
  nb::list tensors;
  for (const auto& tensor : catalog.tensors) {
    std::optional<std::string> dtype;
    if (tensor.dtype) dtype = std::string(smd::name_of(*tensor.dtype));
    tensors.append(nb::make_tuple(tensor.name, dtype, tensor.shape));
  }
  nb::list steps;
  for (const auto& step : catalog.steps) {
    steps.append(nb::make_tuple(step.info.step, step.info.mode, step.info.mode_step, step.wall_secs,
                                step.workers, step.complete));
  }
  nb::list numbers;
  for (const auto& number : catalog.numbers) {
    numbers.append(nb::make_tuple(number.name, number.float32));
  }
  return nb::make_tuple(tensors, steps, numbers, catalog.workers);
}

}  // namespace

void bind_catalog(nb::module_& m) {
  m.def(
      "read_catalog", &read, nb::arg("trial"),
      "Tensors (name, dtype, shape), steps (step, mode, mode step, Unix time, workers, complete), "
      "numbers (name, all are float32) and workers.");
}

}  // namespace smdebug
