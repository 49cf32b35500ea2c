// The numbers of a run as a table that other libraries read through Arrow's C stream interface.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/trial_arg.h"
#include "smd/trial/arrow_stream.h"
#include "smd/trial/frame.h"

namespace smdebug {
namespace {

using Names = std::optional<std::vector<std::string>>;

constexpr const char* kCapsule = "arrow_array_stream";

smd::Frame frame_of(std::shared_ptr<smd::Trial> trial, const Names& tensors,
                    const Names& reductions, smd::Mode mode,
                    const std::optional<std::string>& worker, std::optional<smd::Step> start,
                    std::optional<smd::Step> end) {
  smd::FrameOptions options{.reductions = reductions.value_or(std::vector<std::string>()),
                            .mode = mode,
                            .worker = worker.value_or(""),
                            .steps = {.begin = start.value_or(0), .end = end}};
  if (tensors) options.tensors = tensor_numbers(*trial->snapshot(), *tensors);
  return check(smd::Frame::create(std::move(trial), std::move(options)));
}

void release_stream(PyObject* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (stream == nullptr) return;
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

nb::object stream_of(const smd::Frame& frame, size_t batch_rows) {
  auto stream = std::make_unique<ArrowArrayStream>();
  smd::export_stream(smd::FrameReader(frame, batch_rows), stream.get());
  nb::object capsule = nb::steal(PyCapsule_New(stream.get(), kCapsule, release_stream));
  if (!capsule.is_valid()) {
    stream->release(stream.get());
    throw nb::python_error();
  }
  (void)stream.release();
  return capsule;
}

}  // namespace

void bind_frame(nb::module_& m) {
  nb::class_<smd::Frame>(m, "Frame", "The numbers of a run as a table.")
      .def(
          "__arrow_c_stream__",
          [](const smd::Frame& frame, nb::handle) {
            return stream_of(frame, smd::FrameReader::kBatchRows);
          },
          nb::arg("requested_schema").none() = nb::none(),
          "A new stream from the first row on. A requested schema is not followed.")
      .def("stream", &stream_of, nb::arg("batch_rows"), "The same with batches of another size.")
      .def_prop_ro("columns",
                   [](const smd::Frame& frame) {
                     std::vector<std::string> out = smd::Frame::key_columns();
                     for (auto& name : frame.number_columns()) out.push_back(std::move(name));
                     return out;
                   })
      .def_prop_ro("tensors", [](const smd::Frame& frame) { return frame.tensor_names(); })
      .def_prop_ro("run", [](const smd::Frame& frame) { return frame.trial().name(); });
  m.def(
      "make_frame",
      [](nb::object trial, const Names& tensors, const Names& reductions, smd::Mode mode,
         const std::optional<std::string>& worker, std::optional<smd::Step> start,
         std::optional<smd::Step> end) {
        return frame_of(to_trial(trial), tensors, reductions, mode, worker, start, end);
      },
      nb::arg("trial"), nb::arg("tensors") = nb::none(), nb::arg("reductions") = nb::none(),
      nb::arg("mode") = smd::Mode::global, nb::arg("worker") = nb::none(),
      nb::arg("start") = nb::none(), nb::arg("end") = nb::none());
}

}  // namespace smdebug
