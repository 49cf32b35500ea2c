// A recorded run as Python sees it; the package wraps it. What is absent is None or False here: the
// package knows which exception that means.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/python_log.h"
#include "python/src/storage_arg.h"
#include "python/src/tensor_arg.h"
#include "python/src/values.h"
#include "smd/collection/pattern.h"
#include "smd/config/environment.h"
#include "smd/reduce/reduce.h"
#include "smd/trial/trial.h"

namespace smdebug {
namespace {

using smd::Location;
using smd::Mode;
using smd::Slot;
using smd::Snapshot;
using smd::Step;
using smd::StepRow;
using smd::Trial;
using nb::literals::operator""_a;

std::shared_ptr<Trial> open(const PyStorage& storage, Step begin, std::optional<Step> end,
                            bool check_payloads, nb::callable log) {
  const auto environment = smd::Environment::of_process();
  smd::TrialOptions options{.range = {.begin = begin, .end = end},
                            .check = check_payloads,
                            .end_delay_secs = check(environment.training_end_delay_refresh_secs()),
                            .wait_window = check(environment.incomplete_step_wait_window()),
                            .log = std::make_shared<PythonLog>(std::move(log))};
  smd::Result<std::unique_ptr<Trial>> trial = [&] {
    const nb::gil_scoped_release released;
    return Trial::open(storage.storage, options);
  }();
  return check(std::move(trial));
}

bool wait(Trial& trial, double secs) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(secs));
  constexpr std::chrono::milliseconds kSlice{500};  // between looks for Ctrl-C
  while (std::chrono::steady_clock::now() < deadline) {
    bool woken = false;
    {
      const nb::gil_scoped_release released;
      woken = trial.wait(std::min(deadline, std::chrono::steady_clock::now() + kSlice));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (woken) return true;
  }
  return false;
}

std::vector<smd::Pattern> compile(nb::handle patterns) {
  std::vector<smd::Pattern> out;
  for (const std::string& text : to_strings(patterns, "regex")) {
    out.push_back(check(smd::Pattern::compile(text)));
  }
  return out;
}

// Names of tensors: of a mode, or of one of its steps; those that a pattern finds or a collection
// holds.
std::vector<std::string> tensor_names(Trial& trial, Mode mode, std::optional<Step> step,
                                      nb::handle regex, const smd::Collection* collection) {
  const auto patterns = compile(regex);
  const nb::gil_scoped_release released;
  const auto now = trial.snapshot();
  std::vector<uint32_t> ids;
  if (!step) {
    ids = now->tensors(mode);
  } else if (const StepRow* row = now->find_row(mode, *step)) {
    ids = now->tensors(*row);
  }
  std::vector<std::string> out;
  for (uint32_t id : ids) {
    const std::string& name = now->names().tensors[id];
    const auto found = [&](const smd::Pattern& pattern) { return pattern.found_in(name); };
    if (!patterns.empty() && std::none_of(patterns.begin(), patterns.end(), found)) continue;
    if (collection != nullptr && !collection->holds(name)) continue;
    out.push_back(name);
  }
  return out;
}

// A tensor at a step, looked up once.
struct Place {
  std::shared_ptr<const Snapshot> now;
  uint32_t tensor = 0;
  const StepRow* row = nullptr;
  std::optional<uint32_t> worker;
};

// nullopt: the tensor was not saved at that step, by nobody or not by that worker.
std::optional<Place> find(const Trial& trial, std::string_view name, Step step, Mode mode,
                          const std::optional<std::string>& worker) {
  Place place{.now = trial.snapshot()};
  const auto tensor = place.now->find_tensor(name);
  place.row = place.now->find_row(mode, step);
  if (!tensor || place.row == nullptr) return std::nullopt;
  place.tensor = *tensor;
  if (worker) {
    place.worker = place.now->names().workers.find(*worker);
    if (!place.worker) return std::nullopt;
  }
  return place;
}

smd::TensorValue read_value(Trial& trial, const Snapshot& now, const Location& at) {
  smd::Result<smd::TensorValue> value = [&] {
    const nb::gil_scoped_release released;
    return trial.read(now, at);
  }();
  return check(std::move(value));
}

// A NumPy scalar; nullptr for types that are made by way of an array, which takes longer.
nb::object real_scalar(smd::DType dtype, const std::byte* element) {
  const auto make = [&]<typename T>(const char* type, T number) {
    std::memcpy(&number, element, sizeof(number));
    return nb::module_::import_("numpy").attr(type)(static_cast<double>(number));
  };
  if (dtype == smd::DType::float32) return make("float32", float{});
  if (dtype == smd::DType::float64) return make("float64", double{});
  return {};
}

nb::object number(const smd::Number& value) {
  if (nb::object made = real_scalar(value.dtype, value.bits.data()); made.is_valid()) return made;
  return to_numpy(value.dtype, {}, smd::Bytes(value.bytes().begin(), value.bytes().end()))
      .attr("__getitem__")(nb::tuple());
}

// One element, whatever its shape, as a NumPy scalar.
nb::object read_scalar(Trial& trial, const Snapshot& now, const Location& at) {
  smd::TensorValue value = read_value(trial, now, at);
  if (value.view().size() != 1) {
    raise("SMDebugRuntimeError",
          "The record of a reduction holds something other than one number.");
  }
  if (nb::object made = real_scalar(value.dtype, value.elements.data()); made.is_valid()) {
    return made;
  }
  const nb::object array = to_numpy(std::move(value));
  return array.attr("reshape")(nb::tuple()).attr("__getitem__")(nb::tuple());
}

nb::object value(Trial& trial, const std::string& name, Step step, Mode mode,
                 const std::optional<std::string>& worker) {
  const auto place = find(trial, name, step, mode, worker);
  if (!place) return nb::none();
  const auto at = place->now->find(*place->row, place->tensor, Slot::value(), place->worker);
  return at ? to_numpy(read_value(trial, *place->now, *at)) : nb::none();
}

nb::object reduction_value(Trial& trial, const std::string& name, Step step,
                           const std::string& reduction, Mode mode,
                           const std::optional<std::string>& worker, bool abs) {
  const auto place = find(trial, name, step, mode, worker);
  if (!place) return nb::none();
  if (const auto slot = place->now->find_slot(reduction, abs)) {
    if (const auto at = place->now->find(*place->row, place->tensor, *slot, place->worker)) {
      return read_scalar(trial, *place->now, *at);
    }
  }
  const bool prefixed = reduction.starts_with("abs_");
  const auto wanted =
      check(smd::parse_reduction(abs && !prefixed ? "abs_" + reduction : reduction));
  const auto at = place->now->find(*place->row, place->tensor, Slot::value(), place->worker);
  if (!at) return nb::none();
  smd::ReductionRequest request;
  request.reductions.add(wanted);
  smd::ReductionResult result;
  smd::Status status;
  {
    const nb::gil_scoped_release released;
    auto tensor = trial.read(*place->now, *at);
    status = tensor.ok() ? smd::reduce(tensor->view(), request, result) : tensor.error();
  }
  check(std::move(status));
  return result.values.empty() ? nb::none() : number(result.values.front().second);
}

nb::object reduction_values(Trial& trial, const std::string& name, Step step, Mode mode,
                            const std::optional<std::string>& worker) {
  const auto place = find(trial, name, step, mode, worker);
  if (!place) return nb::none();
  const Snapshot& now = *place->now;
  nb::dict out;
  bool found = false;
  now.for_each_part(*place->row, [&](uint32_t id, const smd::Part& part) {
    if (found || (place->worker && part.worker != *place->worker)) return;
    const auto& layout = now.layout_of(part);
    if (!layout.holds(place->tensor)) return;
    found = true;
    for (const auto& entry : layout.entries_of(place->tensor)) {
      const Slot slot = Slot::from_id(entry.slot);
      if (slot.is_value()) continue;
      const Location at{id, static_cast<uint32_t>(&entry - layout.entries().data())};
      out[nb::make_tuple(now.names().ops[slot.op()], slot.abs())] = read_scalar(trial, now, at);
    }
  });
  return found ? nb::object(out) : nb::none();
}

nb::object shape(Trial& trial, const std::string& name, Step step, Mode mode,
                 const std::optional<std::string>& worker) {
  const auto place = find(trial, name, step, mode, worker);
  if (!place) return nb::none();
  if (const auto* stored = place->now->find_shape(*place->row, place->tensor, place->worker)) {
    return nb::tuple(nb::cast(stored->shape));
  }
  const auto at = place->now->find(*place->row, place->tensor, Slot::value(), place->worker);
  if (!at) return nb::none();
  smd::Result<smd::TensorValue> tensor = [&] {
    const nb::gil_scoped_release released;
    return trial.read(*place->now, *at);
  }();
  return nb::tuple(nb::cast(check(std::move(tensor)).shape));
}

template <typename T>
nb::object to_array(std::vector<T> values) {
  auto* held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

nb::object series(Trial& trial, const std::string& name, const std::string& reduction, Mode mode,
                  const std::string& worker, bool incomplete) {
  smd::Result<smd::Series> found = [&] {
    const nb::gil_scoped_release released;
    return trial.series(
        name, {.reduction = reduction, .mode = mode, .worker = worker, .incomplete = incomplete});
  }();
  smd::Series series = check(std::move(found));
  return nb::make_tuple(to_array(std::move(series.steps)), to_array(std::move(series.values)));
}

// When a worker recorded a step: the time of its first record that tells one.
std::optional<double> wall_secs(const Trial& trial, Step step, const std::string& worker) {
  const nb::gil_scoped_release released;
  const auto now = trial.snapshot();
  const StepRow* row = now->find_row(step);
  const auto number = now->names().workers.find(worker);
  if (row == nullptr || !number) return std::nullopt;
  for (uint32_t i = row->first_part; i != smd::kNone; i = now->part(i).next) {
    if (now->part(i).worker != *number) continue;
    const auto size = static_cast<uint32_t>(now->layout_of(now->part(i)).entries().size());
    for (uint32_t entry = 0; entry < size; ++entry) {
      const auto about = trial.describe(*now, {.part = i, .entry = entry});
      if (about.ok() && about->wall_secs > 0) return about->wall_secs;
    }
  }
  return std::nullopt;
}

}  // namespace

void bind_trial(nb::module_& m) {
  nb::class_<Trial>(m, "Trial", "A recorded run, finished or growing.")
      .def_static("open", &open, nb::arg("storage"), nb::arg("begin"), nb::arg("end").none(),
                  nb::arg("check"), nb::arg("log"))
      .def_prop_ro("place", &Trial::name)
      .def(
          "refresh",
          [](Trial& t) {
            smd::Status status;
            {
              const nb::gil_scoped_release released;
              status = t.refresh();
            }
            check(std::move(status));
          },
          "Reads what is new.")
      .def("wait", &wait, nb::arg("secs"),
           "Waits until refresh() may find something; False when the time is over.")
      .def_prop_ro("is_open", &Trial::is_open)
      .def_prop_ro("has_ended", &Trial::has_ended)
      .def_prop_ro("loaded_all", [](const Trial& t) { return t.snapshot()->loaded_all(); })
      .def_prop_ro("num_workers", [](const Trial& t) { return t.snapshot()->num_workers(); })
      .def_prop_ro("last_complete_step",
                   [](const Trial& t) { return t.snapshot()->last_complete_step(); })
      .def_prop_ro("workers", [](const Trial& t) { return t.snapshot()->workers(); })
      .def_prop_ro("collections_revision",
                   [](const Trial& t) { return t.snapshot()->collections_revision(); })
      .def("collections_json", [](const Trial& t) { return t.snapshot()->collections().to_json(); })
      .def(
          "steps",
          [](const Trial& t, Mode mode, bool incomplete) {
            return t.snapshot()->steps(mode, incomplete);
          },
          nb::arg("mode"), nb::arg("incomplete"))
      .def("modes", [](const Trial& t) { return t.snapshot()->modes(); })
      .def(
          "step_info",
          [](const Trial& t, Step step) -> std::optional<std::tuple<Mode, Step>> {
            const auto now = t.snapshot();
            const StepRow* row = now->find_row(step);
            if (row == nullptr) return std::nullopt;
            return std::tuple{row->info.mode, row->info.mode_step};
          },
          nb::arg("global_step"))
      .def("wall_secs", &wall_secs, nb::arg("global_step"), nb::arg("worker"))
      .def(
          "global_step",
          [](const Trial& t, Mode mode, Step step) {
            return t.snapshot()->global_step(mode, step);
          },
          nb::arg("mode"), nb::arg("mode_step"))
      .def(
          "state",
          [](const Trial& t, Mode mode, Step step) {
            return static_cast<int>(t.snapshot()->state(mode, step));
          },
          nb::arg("mode"), nb::arg("step"))
      .def(
          "last_step", [](const Trial& t, Mode mode) { return t.snapshot()->last_step(mode); },
          nb::arg("mode"))
      .def("tensor_names", &tensor_names, nb::arg("mode"), nb::arg("step").none(),
           nb::arg("regex").none(), nb::arg("collection").none())
      .def(
          "has_tensor",
          [](const Trial& t, std::string_view name) {
            return t.snapshot()->find_tensor(name).has_value();
          },
          nb::arg("name"))
      .def(
          "has_worker",
          [](const Trial& t, const std::string& name) {
            return t.snapshot()->names().workers.find(name).has_value();
          },
          nb::arg("name"))
      .def(
          "tensor_steps",
          [](const Trial& t, std::string_view name, Mode mode, bool incomplete) {
            const auto now = t.snapshot();
            const auto id = now->find_tensor(name);
            return id ? now->steps_of(*id, mode, incomplete) : std::vector<Step>();
          },
          nb::arg("name"), nb::arg("mode"), nb::arg("incomplete"))
      .def(
          "tensor_workers",
          [](const Trial& t, std::string_view name, Step step, Mode mode) {
            const auto place = find(t, name, step, mode, std::nullopt);
            return place ? place->now->workers_of(*place->row, place->tensor)
                         : std::vector<std::string>();
          },
          nb::arg("name"), nb::arg("step"), nb::arg("mode"))
      .def(
          "original_name",
          [](const Trial& t, std::string_view name) -> std::optional<std::string> {
            const auto now = t.snapshot();
            const auto id = now->find_tensor(name);
            for (size_t i = 0; id && i < now->row_count(); ++i) {
              if (const auto* shape = now->find_shape(now->row(i), *id, std::nullopt)) {
                return shape->original_name;
              }
            }
            return std::nullopt;
          },
          nb::arg("name"))
      .def("value", &value, nb::arg("name"), nb::arg("step"), nb::arg("mode"),
           nb::arg("worker").none())
      .def("reduction_value", &reduction_value, nb::arg("name"), nb::arg("step"),
           nb::arg("reduction"), nb::arg("mode"), nb::arg("worker").none(), nb::arg("abs"))
      .def("reduction_values", &reduction_values, nb::arg("name"), nb::arg("step"), nb::arg("mode"),
           nb::arg("worker").none())
      .def("shape", &shape, nb::arg("name"), nb::arg("step"), nb::arg("mode"),
           nb::arg("worker").none())
      .def("series", &series, nb::arg("name"), nb::arg("reduction"), nb::arg("mode"),
           nb::arg("worker"), nb::arg("incomplete"));
  m.def("missing_event_file_retry_limit",
        [] { return check(smd::Environment::of_process().missing_event_file_retry_limit()); });
}

}  // namespace smdebug
