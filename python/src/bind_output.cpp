// What goes beside a run: files for TensorBoard, and numbers for whoever takes them.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/tensor_arg.h"
#include "smd/reduce/reduce.h"
#include "smd/summary/summary_files.h"
#include "smd/writer/outputs/number_feed.h"

namespace smdebug {
namespace {

// One file of summaries, written by hand.
class SummaryFile final {
 public:
  SummaryFile(const std::string& folder, const std::string& writer, smd::Mode mode, smd::Step step)
      : files_(
            {.storage = check(smd::storage::open_storage(folder)), .writer = writer, .step = step}),
        mode_(mode) {}

  void scalar(const std::string& name, nb::handle value, smd::Step step, double wall_secs) {
    files_.scalar(at(step), name, to_number(value, name).to_double(), wall_secs);
  }
  // False: there is nothing that a histogram could show.
  bool histogram(const std::string& name, nb::handle value, smd::Step step, double wall_secs) {
    const TensorArg arg(value, name);
    if (arg.holds_strings() || arg.view().dtype == smd::DType::boolean) return false;
    smd::ReductionResult reduced;
    check(smd::reduce(arg.view(), {.histogram = true}, reduced));
    if (reduced.histogram.counts.empty()) return false;
    files_.histogram(at(step), name, smd::view_of(reduced.histogram), wall_secs);
    return true;
  }
  void flush() { check(files_.flush()); }
  void close() { check(files_.close()); }

 private:
  smd::StepInfo at(smd::Step step) const { return {.step = step, .mode = mode_}; }

  smd::SummaryFiles files_;
  const smd::Mode mode_;
};

nb::object take(smd::NumberFeed& feed, double timeout_secs) {
  constexpr double kLongestSecs = 3600;
  const std::chrono::duration<double> wait(std::clamp(timeout_secs, 0.0, kLongestSecs));
  std::optional<smd::FedStep> step;
  {
    const nb::gil_scoped_release released;
    step = feed.take(std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait));
  }
  if (!step) return nb::none();
  nb::dict scalars;
  for (const auto& [name, value] : step->scalars) scalars[name.c_str()] = value;
  nb::list reductions;
  for (const smd::FedReduction& one : step->reductions) {
    reductions.append(nb::make_tuple(one.tensor, one.reduction, one.value));
  }
  return nb::make_tuple(step->step.step, step->step.mode, step->step.mode_step, step->wall_secs,
                        step->worker, scalars, reductions);
}

}  // namespace

void bind_output(nb::module_& m) {
  nb::class_<SummaryFile>(m, "SummaryFile", "A file that TensorBoard shows.")
      .def(nb::init<const std::string&, const std::string&, smd::Mode, smd::Step>(),
           nb::arg("folder"), nb::arg("writer"), nb::arg("mode"), nb::arg("step"))
      .def("scalar", &SummaryFile::scalar, nb::arg("name"), nb::arg("value"), nb::arg("step"),
           nb::arg("wall_secs"))
      .def("histogram", &SummaryFile::histogram, nb::arg("name"), nb::arg("value"), nb::arg("step"),
           nb::arg("wall_secs"))
      .def("flush", &SummaryFile::flush)
      .def("close", &SummaryFile::close);
  nb::class_<smd::NumberFeed>(m, "NumberFeed", "The numbers of the steps that a hook saves.")
      .def(
          "__init__",
          [](smd::NumberFeed* self, std::vector<std::string> reductions, size_t max_steps) {
            new (self) smd::NumberFeed(
                {.reductions = std::move(reductions), .max_steps = std::max<size_t>(max_steps, 1)});
          },
          nb::arg("reductions"), nb::arg("max_steps") = 1024)
      .def("take", &take, nb::arg("timeout_secs"),
           "(step, mode, mode_step, wall_secs, worker, scalars, reductions), or None when there "
           "was nothing in time or the feed has ended.")
      .def("end", &smd::NumberFeed::end)
      .def_prop_ro("ended", &smd::NumberFeed::ended)
      .def_prop_ro("dropped_steps", &smd::NumberFeed::dropped_steps);
}

}  // namespace smdebug
