// The state of an interruptible job as Python sees it, for tools written for the original.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "smd/config/environment.h"
#include "smd/hook/resume_state.h"

namespace smdebug {

using smd::ResumeFile;
using smd::ResumeState;

void bind_resume(nb::module_& m) {
  nb::class_<ResumeState>(m, "ResumeState", "The counters of a job at one of its checkpoints.")
      .def(nb::init<>())
      .def_rw("training_run", &ResumeState::training_run)
      .def_rw("latest_step_saved", &ResumeState::latest_step_saved, nb::arg("value").none())
      .def_rw("latest_step_seen", &ResumeState::latest_step_seen)
      .def_rw("mode_steps", &ResumeState::mode_steps);
  nb::class_<ResumeFile>(m, "ResumeFile", "metadata.json beside the checkpoints of a job.")
      .def(nb::init<std::string>(), nb::arg("folder"))
      .def(
          "load", [](const ResumeFile& file) { return check(file.load()); },
          "The entry that went furthest, or None.")
      .def("has_new_checkpoint", &ResumeFile::has_new_checkpoint)
      .def(
          "append",
          [](const ResumeFile& file, const ResumeState& state) { check(file.append(state)); },
          nb::arg("state"));
  m.def(
      "checkpoint_folder",
      [] {
        return check(
            smd::checkpoint_folder(smd::Environment::of_process().checkpoint_config_file_path()));
      },
      "Where the job keeps its checkpoints, or None.");
}

}  // namespace smdebug
