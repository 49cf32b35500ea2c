// Statistics of one tensor, as the hook computes them.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/tensor_arg.h"
#include "smd/reduce/reduce.h"

namespace smdebug {
namespace {

// {name: number} of the reductions that the element type has.
nb::dict reduce(nb::handle tensor, const std::vector<std::string>& names) {
  smd::ReductionRequest request;
  for (const std::string& name : names) request.reductions.add(check(smd::parse_reduction(name)));
  const TensorArg arg(tensor, "tensor");
  if (arg.holds_strings()) raise("SMDebugTypeError", "Strings have no reductions.");
  const smd::TensorView view = arg.view();
  check(smd::check(view));
  smd::ReductionResult result;
  smd::Status status;
  {
    const nb::gil_scoped_release released;
    status = smd::reduce(view, request, result);
  }
  check(std::move(status));
  nb::dict out;
  for (const auto& [reduction, number] : result.values) {
    out[nb::cast(reduction.name())] = number.to_double();
  }
  return out;
}

}  // namespace

void bind_reduce(nb::module_& m) { m.def("reduce", &reduce, nb::arg("tensor"), nb::arg("names")); }

}  // namespace smdebug
