// Reading and writing single files of the original's layout, for tools that work below the hook.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/tensor_arg.h"
#include "python/src/values.h"
#include "smd/config/hook_config.h"
#include "smd/format/event.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "smd/storage/storage.h"
#include "smd/types/worker.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smdebug {
namespace {

using smd::format::Event;

using nb::literals::operator""_a;

nb::object value_of(Event& event) {
  smd::format::StoredTensor& tensor = *event.tensor;
  if (tensor.dtype != smd::DType::string) {
    return to_numpy(tensor.dtype, tensor.shape, std::move(tensor.elements));
  }
  const nb::object np = nb::module_::import_("numpy");
  return np.attr("array")(tensor.strings, "dtype"_a = "U").attr("reshape")(tensor.shape);
}

// One record of an event file.
struct EventRecord {
  std::string name;
  smd::StepInfo step;
  double wall_secs = 0;
  std::string dtype;
  nb::object value;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool checksummed = false;
};

EventRecord record_of(smd::ByteSpan bytes, uint64_t offset) {
  const auto framed = check(smd::format::parse_record(bytes, offset));
  Event event = check(smd::format::parse_event(framed.payload));
  EventRecord record{.name = event.name,
                     .step = event.step,
                     .wall_secs = event.wall_secs,
                     .value = nb::none(),
                     .offset = offset,
                     .length = framed.size_bytes,
                     .checksummed = framed.footer == smd::format::Footer::checksum};
  if (event.tensor) {
    record.dtype = smd::name_of(event.tensor->dtype);
    record.value = value_of(event);
  }
  return record;
}

std::pair<std::string, std::string> split(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

smd::Bytes read_file(const std::string& path) {
  const auto [folder, name] = split(path);
  return check(smd::storage::read_all(*smd::storage::local_storage(folder), name));
}

std::vector<EventRecord> read_event_file(const std::string& path) {
  const smd::Bytes bytes = read_file(path);
  std::vector<EventRecord> records;
  for (uint64_t offset = 0; offset < bytes.size();) {
    records.push_back(record_of(smd::ByteSpan(bytes).subspan(offset), offset));
    offset += records.back().length;
  }
  return records;
}

EventRecord read_record(const std::string& path, uint64_t offset, uint64_t length) {
  const auto [folder, name] = split(path);
  const auto storage = smd::storage::local_storage(folder);
  const auto file = check(storage->open(name));
  const uint64_t size = check(file->size());
  if (offset > size || length > size - offset) {
    raise(
        {smd::ErrorCode::truncated,
         fmt::format("The record at offset {} of {} bytes lies outside of the file of {} bytes: {}",
                     offset, length, size, path)});
  }
  smd::Bytes bytes(length);
  check(file->read_at(offset, bytes));
  return record_of(bytes, offset);
}

// Writes one step of one worker, from the calling thread.
class StepFile final {
 public:
  StepFile(const std::string& out_dir, smd::Step step, const std::string& worker,
           const std::string& layout, std::optional<uint64_t> max_record_bytes)
      : step_(step) {
    auto storage = check(smd::storage::open_storage(out_dir));
    const std::string name = smd::worker_to_file_name(worker);
    packed_ = check(smd::parse_run_layout(layout)) == smd::RunLayout::packed;
    if (packed_) {
      smd::PackedSinkOptions options{.storage = std::move(storage), .worker = name};
      options.max_record_bytes = max_record_bytes.value_or(options.max_record_bytes);
      sink_ = smd::packed_sink(std::move(options));
    } else {
      sink_ = smd::original_sink({.storage = std::move(storage), .worker = name});
    }
  }

  void tensor(const std::string& name, nb::handle value, smd::Mode mode, smd::Step mode_step,
              double wall_secs) {
    const TensorArg arg(value, name);
    begin(mode, mode_step);
    const smd::format::TensorHead head{
        .name = name,
        .dtype = arg.holds_strings() ? smd::DType::string : arg.view().dtype,
        .shape = arg.shape(),
        .wall_secs = wall_secs};
    if (arg.holds_strings()) {
      const std::vector<std::string_view> strings(arg.strings().begin(), arg.strings().end());
      return check(sink_->strings(head, strings));
    }
    const smd::TensorView view = arg.view();
    if (view.size() == 0) return;
    if (!packed_) check(smd::format::check_record_size(head, static_cast<uint64_t>(view.size())));
    if (view.is_contiguous()) return check(sink_->tensor(head, view.bytes()));
    smd::Bytes copy(static_cast<size_t>(view.size_bytes()));
    smd::gather(view, 0, copy);
    check(sink_->tensor(head, copy));
  }

  void shape(const std::string& name, const std::string& original, const smd::Shape& shape,
             smd::Mode mode, smd::Step mode_step) {
    begin(mode, mode_step);
    check(sink_->shape(name, original, shape));
  }

  void close() {
    if (!open_) return;
    open_ = false;
    check(sink_->end_step());
    check(sink_->close());
  }

 private:
  void begin(smd::Mode mode, smd::Step mode_step) {
    if (open_) return;
    check(sink_->begin_step({.step = step_, .mode = mode, .mode_step = mode_step}));
    open_ = true;
  }

  smd::Step step_;
  bool packed_ = false;
  std::unique_ptr<smd::Sink> sink_;
  bool open_ = false;
};

}  // namespace

void bind_format(nb::module_& m) {
  nb::class_<EventRecord>(m, "EventRecord", "One record of an event file.")
      .def_ro("name", &EventRecord::name)
      .def_prop_ro("step", [](const EventRecord& r) { return r.step.step; })
      .def_prop_ro("mode", [](const EventRecord& r) { return r.step.mode; })
      .def_prop_ro("mode_step", [](const EventRecord& r) { return r.step.mode_step; })
      .def_ro("wall_secs", &EventRecord::wall_secs)
      .def_ro("dtype", &EventRecord::dtype,
              "The element type; the value of a bfloat16 or float8 tensor is "
              "widened to float32, which is exact.")
      .def_ro("value", &EventRecord::value)
      .def_ro("offset", &EventRecord::offset)
      .def_ro("length", &EventRecord::length)
      .def_ro("checksummed", &EventRecord::checksummed);
  m.def("read_event_file", &read_event_file, nb::arg("path"));
  m.def("read_record", &read_record, nb::arg("path"), nb::arg("offset"), nb::arg("length"));
  m.def(
      "parse_index",
      [](const std::string& text, const std::string& source) {
        const auto index = check(smd::format::parse_index(text, source));
        nb::dict out;
        out["mode"] = index.mode;
        out["mode_step"] = index.mode_step;
        out["event_file"] =
            index.event_file.empty() ? nb::none() : nb::object(nb::str(index.event_file.c_str()));
        nb::list tensors;
        for (const auto& t : index.tensors)
          tensors.append(nb::make_tuple(t.name, t.offset, t.length));
        nb::list shapes;
        for (const auto& s : index.shapes) {
          shapes.append(nb::make_tuple(s.name, s.original_name, nb::tuple(nb::cast(s.shape))));
        }
        out["tensors"] = tensors;
        out["shapes"] = shapes;
        return out;
      },
      nb::arg("text"), nb::arg("source") = "");
  nb::class_<StepFile>(m, "StepFile", "Writes one step of one worker.")
      .def(nb::init<const std::string&, smd::Step, const std::string&, const std::string&,
                    std::optional<uint64_t>>(),
           nb::arg("out_dir"), nb::arg("step"), nb::arg("worker"), nb::arg("layout") = "original",
           nb::arg("max_record_bytes") = nb::none())
      .def("tensor", &StepFile::tensor, nb::arg("name"), nb::arg("value").none(), nb::arg("mode"),
           nb::arg("mode_step"), nb::arg("wall_secs"))
      .def("shape", &StepFile::shape, nb::arg("name"), nb::arg("original_name"), nb::arg("shape"),
           nb::arg("mode"), nb::arg("mode_step"))
      .def("close", &StepFile::close);
  m.def("event_file_name", [](smd::Step step, const std::string& worker) {
    return smd::format::event_file_name(step, smd::worker_to_file_name(worker));
  });
  m.def("index_file_name", [](smd::Step step, const std::string& worker) {
    return smd::format::index_file_name(step, smd::worker_to_file_name(worker));
  });
  m.def("collections_file_name", [](const std::string& worker) {
    return smd::format::collections_file_name(smd::worker_to_file_name(worker));
  });
  m.def("parse_step_file_name",
        [](const std::string& path) -> std::optional<std::tuple<smd::Step, std::string>> {
          const auto parsed = smd::format::parse_step_file_name(path);
          if (!parsed) return std::nullopt;
          return std::tuple{parsed->step, parsed->worker};
        });
  m.attr("END_MARKER") = std::string(smd::format::kEndMarker);
  m.attr("CLAIM") = std::string(smd::format::kClaim);
}

}  // namespace smdebug
