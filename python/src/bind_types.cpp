// ModeKeys and names.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "smd/base/nearest.h"
#include "smd/types/mode.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"

namespace smdebug {

namespace nb = nanobind;

void bind_types(nb::module_& m) {
  nb::enum_<smd::Mode>(m, "ModeKeys", "The phase of a training job.")
      .value("TRAIN", smd::Mode::train)
      .value("EVAL", smd::Mode::eval)
      .value("PREDICT", smd::Mode::predict)
      .value("GLOBAL", smd::Mode::global);

  m.attr("REDUCTION_PREFIX") = std::string(smd::kReductionPrefix);
  m.attr("SCALAR_PREFIX") = std::string(smd::kScalarPrefix);
  m.def("reduction_tensor_name", &smd::reduction_tensor_name, nb::arg("op"), nb::arg("abs"),
        nb::arg("tensor"));
  m.def(
      "parse_reduction_name",
      [](const std::string& name) -> std::optional<std::tuple<std::string, bool, std::string>> {
        const auto parts = smd::parse_reduction_name(name);
        if (!parts) return std::nullopt;
        return std::tuple{std::string(parts->op), parts->abs, std::string(parts->tensor)};
      },
      nb::arg("name"), "(operation, absolute, tensor) of a mangled name; None for others.");
  m.def(
      "did_you_mean",
      [](const std::string& typed, const std::vector<std::string>& choices) {
        return smd::did_you_mean(typed, choices);
      },
      nb::arg("typed"), nb::arg("choices"), "A closing question, or nothing.");
  m.def("worker_to_file_name", [](const std::string& w) { return smd::worker_to_file_name(w); });
  m.def("worker_from_file_name",
        [](const std::string& w) { return smd::worker_from_file_name(w); });
}

}  // namespace smdebug
