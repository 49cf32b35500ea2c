// What differs between two runs.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/trial_arg.h"
#include "smd/trial/diff.h"

namespace smdebug {
namespace {

using smd::Diff;
using smd::Difference;
using smd::OnlyThere;

struct DiffArguments {
  double absolute = 0;
  double relative = 0;
  std::vector<std::string> patterns;
  smd::Mode mode = smd::Mode::global;
  size_t top = 0;
  nb::object progress;
};

// Takes the GIL back for the caller's function and for signals such as Ctrl-C.
class Progress final {
 public:
  explicit Progress(nb::handle callable) : callable_(callable) {}

  bool operator()(int64_t done, int64_t total) {
    const nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      // Only False stops: a function that returns nothing does not.
      return callable_.is_none() || !callable_(done, total).is(Py_False);
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  void rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  nb::handle callable_;
  std::exception_ptr error_;
};

Diff compare(smd::Trial& a, smd::Trial& b, const DiffArguments& arguments) {
  Progress progress(arguments.progress);
  smd::DiffOptions options{
      .tolerance = {.absolute = arguments.absolute, .relative = arguments.relative},
      .patterns = arguments.patterns,
      .mode = arguments.mode,
      .top = arguments.top,
      .progress = [&](int64_t done, int64_t total) { return progress(done, total); }};
  auto found = [&] {
    const nb::gil_scoped_release release;
    return smd::diff_trials(a, b, options);
  }();
  progress.rethrow();
  return check(std::move(found));
}

void bind_difference(nb::module_& m) {
  nb::class_<Difference>(m, "Difference", "Two records of one tensor that differ.")
      .def_ro("tensor", &Difference::tensor)
      .def_ro("worker", &Difference::worker, "In run A.")
      .def_prop_ro(
          "step", [](const Difference& d) { return d.step.step; }, "The global step in run A.")
      .def_prop_ro("mode", [](const Difference& d) { return d.step.mode; })
      .def_prop_ro("mode_step", [](const Difference& d) { return d.step.mode_step; })
      .def_ro("step_in_b", &Difference::step_in_b, "The global step in run B.")
      .def_prop_ro(
          "kind", [](const Difference& d) { return std::string(smd::name_of(d.kind)); },
          "value, reduction, dtype, shape or strings.")
      .def_prop_ro(
          "reduction",
          [](const Difference& d) {
            return d.reduction.empty() ? std::nullopt : std::optional(d.reduction);
          },
          "The reduction's name; None for other kinds.")
      .def_prop_ro("elements", [](const Difference& d) { return d.elements.elements; })
      .def_prop_ro("differing", [](const Difference& d) { return d.elements.differing; })
      .def_prop_ro("nan_only_in_a", [](const Difference& d) { return d.elements.nan_only_in_a; })
      .def_prop_ro("nan_only_in_b", [](const Difference& d) { return d.elements.nan_only_in_b; })
      .def_prop_ro("max_absolute", [](const Difference& d) { return d.elements.max_absolute; })
      .def_prop_ro(
          "max_relative", [](const Difference& d) { return d.elements.max_relative; },
          "|a - b| / max(|a|, |b|).")
      .def_prop_ro(
          "first_element",
          [](const Difference& d) {
            return d.elements.first < 0 ? std::nullopt : std::optional(d.elements.first);
          },
          "The position of the first differing element, in C order.")
      .def_prop_ro(
          "worst_element",
          [](const Difference& d) {
            return d.elements.worst < 0 ? std::nullopt : std::optional(d.elements.worst);
          },
          "The position of the element with the largest relative difference.")
      .def_prop_ro(
          "a",
          [](const Difference& d) -> nb::object {
            return d.a.empty() && d.b.empty() ? nb::cast(d.elements.worst_a) : nb::cast(d.a);
          },
          "The worst element in run A, or its type and shape.")
      .def_prop_ro(
          "b",
          [](const Difference& d) -> nb::object {
            return d.a.empty() && d.b.empty() ? nb::cast(d.elements.worst_b) : nb::cast(d.b);
          },
          "The same in run B.")
      .def_ro("occurrences", &Difference::occurrences,
              "How many times, over steps and workers, the tensor differs.")
      .def("__repr__", [](const Difference& d) {
        return fmt::format("<Difference of {} '{}' at step {}: {} of {} elements>",
                           d.reduction.empty() ? smd::name_of(d.kind) : d.reduction, d.tensor,
                           d.step.step, d.elements.differing, d.elements.elements);
      });
}

}  // namespace

void bind_diff(nb::module_& m) {
  bind_difference(m);
  nb::class_<OnlyThere>(m, "OnlyThere", "What one run holds and the other does not.")
      .def_ro("tensors", &OnlyThere::tensors)
      .def_prop_ro(
          "steps",
          [](const OnlyThere& only) {
            nb::list out;
            for (const smd::StepInfo& s : only.steps) {
              out.append(nb::make_tuple(s.step, s.mode, s.mode_step));
            }
            return out;
          },
          "(global step, mode, mode step) of each.")
      .def_ro("workers", &OnlyThere::workers)
      .def_prop_ro(
          "records",
          [](const OnlyThere& only) {
            nb::list out;
            for (const auto& r : only.records) {
              out.append(nb::make_tuple(r.tensor, r.first.step, r.count));
            }
            return out;
          },
          "(tensor, first global step, number of records) of tensors that both runs have.")
      .def("__bool__", [](const OnlyThere& only) { return !only.empty(); });
  nb::class_<Diff>(m, "Diff", "What differs between two runs.")
      .def_ro("name_a", &Diff::name_a)
      .def_ro("name_b", &Diff::name_b)
      .def_ro("first", &Diff::first)
      .def_ro("table", &Diff::table)
      .def_ro("differing_tensors", &Diff::differing_tensors)
      .def_ro("only_in_a", &Diff::only_in_a)
      .def_ro("only_in_b", &Diff::only_in_b)
      .def_prop_ro("compared",
                   [](const Diff& diff) {
                     nb::dict out;
                     out["steps"] = diff.compared.steps;
                     out["tensors"] = diff.compared.tensors;
                     out["values"] = diff.compared.values;
                     out["elements"] = diff.compared.elements;
                     out["reductions"] = diff.compared.reductions;
                     out["shapes"] = diff.compared.shapes;
                     return out;
                   })
      .def_ro("stopped", &Diff::stopped)
      .def_prop_ro("equal", &Diff::equal);
  m.def(
      "diff_trials",
      [](nb::object a, nb::object b, double absolute, double relative,
         std::vector<std::string> patterns, smd::Mode mode, size_t top, nb::object progress) {
        const auto trial_a = to_trial(a);
        const auto trial_b = to_trial(b);
        return compare(*trial_a, *trial_b,
                       {absolute, relative, std::move(patterns), mode, top, progress});
      },
      nb::arg("a"), nb::arg("b"), nb::arg("absolute") = 0.0, nb::arg("relative") = 0.0,
      nb::arg("patterns") = std::vector<std::string>(), nb::arg("mode") = smd::Mode::global,
      nb::arg("top") = size_t{20}, nb::arg("progress").none() = nb::none());
}

}  // namespace smdebug
