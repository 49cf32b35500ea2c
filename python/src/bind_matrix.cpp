// One statistic of many tensors and steps as NumPy arrays that share the core's memory.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/trial_arg.h"
#include "smd/trial/matrix.h"

namespace smdebug {
namespace {

using Names = std::optional<std::vector<std::string>>;

// The arrays keep the whole matrix.
nb::object arrays_of(smd::Matrix found) {
  auto* const matrix = new smd::Matrix(std::move(found));
  const nb::capsule owner(matrix, [](void* p) noexcept { delete static_cast<smd::Matrix*>(p); });
  const size_t shape[] = {matrix->rows(), matrix->columns()};
  std::byte* const elements = matrix->memory.get();
  const nb::object values =
      matrix->dtype == smd::DType::float32
          ? nb::cast(nb::ndarray<nb::numpy, float>(elements, 2, shape, owner))
          : nb::cast(nb::ndarray<nb::numpy, double>(elements, 2, shape, owner));
  nb::object present = nb::none();
  if (!matrix->present.empty()) {
    present = nb::cast(nb::ndarray<nb::numpy, bool>(matrix->present.data(), 2, shape, owner));
  }
  const size_t count[] = {matrix->columns()};
  const nb::object steps =
      nb::cast(nb::ndarray<nb::numpy, smd::Step>(matrix->steps.data(), 1, count, owner));
  return nb::make_tuple(values, present, matrix->names, steps);
}

nb::object read(nb::handle trial_object, const std::string& reduction, const Names& tensors,
                smd::Mode mode, const std::optional<std::string>& worker,
                std::optional<smd::Step> start, std::optional<smd::Step> end, bool incomplete,
                bool compute) {
  const auto trial = to_trial(trial_object);
  smd::MatrixOptions options{.reduction = reduction,
                             .mode = mode,
                             .worker = worker.value_or(""),
                             .steps = {.begin = start.value_or(0), .end = end},
                             .incomplete = incomplete,
                             .compute = compute};
  if (tensors) options.tensors = tensor_numbers(*trial->snapshot(), *tensors);
  smd::Result<smd::Matrix> matrix = [&] {
    const nb::gil_scoped_release released;
    return smd::read_matrix(*trial, options);
  }();
  return arrays_of(check(std::move(matrix)));
}

}  // namespace

void bind_matrix(nb::module_& m) {
  m.def("read_matrix", &read, nb::arg("trial"), nb::arg("reduction"), nb::arg("tensors").none(),
        nb::arg("mode"), nb::arg("worker").none(), nb::arg("start").none(), nb::arg("end").none(),
        nb::arg("incomplete"), nb::arg("compute") = true,
        "(numbers, which of them are there or None, names, steps); None: all are there.");
}

}  // namespace smdebug
