// The hook as Python sees it; the package wraps it.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/src/bindings.h"
#include "python/src/credentials.h"
#include "python/src/errors.h"
#include "python/src/python_log.h"
#include "python/src/released_gil.h"
#include "python/src/tensor_arg.h"
#include "python/src/values.h"
#include "smd/hook/hook.h"
#include "smd/watch/watch.h"

namespace smdebug {
namespace {

using smd::Hook;

// A Python callable that tells (name, chief, count).
std::function<smd::Worker()> identify_with(nb::object callable) {
  auto shared = std::shared_ptr<nb::object>(new nb::object(std::move(callable)), [](nb::object* o) {
    const nb::gil_scoped_acquire gil;
    delete o;
  });
  return [shared] {
    const nb::gil_scoped_acquire gil;
    const auto [name, chief, count] =
        nb::cast<std::tuple<std::string, std::string, int>>((*shared)());
    return smd::Worker{.name = name, .chief = chief, .count = count};
  };
}

// Arguments that every way of making a hook has.
smd::HookOptions plumbing(nb::dict arguments) {
  smd::HookOptions options;
  const auto get = [&](const char* key) -> nb::object {
    return arguments.contains(key) ? nb::object(arguments[key]) : nb::none();
  };
  if (const nb::object log = get("log"); !log.is_none()) {
    options.log = std::make_shared<PythonLog>(nb::cast<nb::callable>(log));
  }
  if (const nb::object identify = get("identify"); !identify.is_none()) {
    options.identify = identify_with(identify);
  }
  if (const nb::object table = get("builtin_collections"); !table.is_none()) {
    options.builtin_collections.clear();
    for (nb::handle row : table) {
      const auto [name, patterns, raw_only] =
          nb::cast<std::tuple<std::string, std::vector<std::string>, bool>>(row);
      options.builtin_collections.push_back(
          {.name = name, .patterns = patterns, .raw_only = raw_only});
    }
  }
  if (const nb::object names = get("default_collections"); !names.is_none()) {
    options.default_collections = to_strings(names, "default_collections");
  }
  if (const nb::object interval = get("default_save_interval"); !interval.is_none()) {
    options.default_save_interval = to_int(interval, "default_save_interval");
  }
  if (const nb::object bytes = get("max_queue_bytes"); !bytes.is_none()) {
    const int64_t limit = to_int(bytes, "max_queue_bytes");
    if (limit < 1)
      raise("SMDebugValueError", fmt::format("max_queue_bytes must be at least 1, not {}.", limit));
    options.writer.max_queue_bytes = static_cast<size_t>(limit);
  }
  if (const nb::object credentials = get("credentials"); !credentials.is_none()) {
    use_credentials_of(options.s3, credentials);
  }
  if (const nb::object feed = get("feed"); !feed.is_none()) {
    options.feed = nb::cast<std::shared_ptr<smd::NumberFeed>>(feed);
  }
  if (const nb::object watch = get("watch"); !watch.is_none()) {
    nb::cast<std::shared_ptr<smd::watch::Watch>>(watch)->attach(options);
  }
  if (const nb::object set = get("collections"); !set.is_none()) {
    options.collections = nb::cast<std::shared_ptr<smd::CollectionSet>>(set);
  }
  return options;
}

double to_share(nb::handle value) {
  double share = 0;
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast<double>(value, share)) {
    raise("SMDebugTypeError",
          fmt::format("max_overhead must be a number such as 0.01, not {}.", describe(value)));
  }
  return share;
}

smd::HookConfig config_from(const nb::dict& arguments) {
  smd::HookConfig config;
  const auto get = [&](const char* key) -> nb::object {
    return arguments.contains(key) ? nb::object(arguments[key]) : nb::none();
  };
  config.out_dir = nb::cast<std::string>(get("out_dir"));
  config.export_tensorboard = nb::cast<bool>(get("export_tensorboard"));
  if (const nb::object dir = get("tensorboard_dir"); !dir.is_none()) {
    config.tensorboard_dir = nb::cast<std::string>(dir);
  }
  config.dry_run = nb::cast<bool>(get("dry_run"));
  config.save_all = nb::cast<bool>(get("save_all"));
  config.include_regex = to_strings(get("include_regex"), "include_regex");
  config.exclude_regex = to_strings(get("exclude_regex"), "exclude_regex");
  config.include_collections = to_strings(get("include_collections"), "include_collections");
  config.include_workers =
      check(smd::parse_include_workers(nb::cast<std::string>(get("include_workers"))));
  config.durable = check(smd::parse_durability(nb::cast<std::string>(get("durable"))));
  config.overflow = check(smd::parse_overflow(nb::cast<std::string>(get("overflow"))));
  if (const nb::object layout = get("layout"); !layout.is_none()) {
    config.layout = check(smd::parse_run_layout(nb::cast<std::string>(layout)));
  }
  if (const nb::object save = get("save_config"); !save.is_none()) {
    config.save_config = nb::cast<const smd::SaveConfig&>(save);
  }
  if (const nb::object reductions = get("reduction_config"); !reductions.is_none()) {
    if (!nb::isinstance<smd::ReductionConfig>(reductions)) {
      raise("SMDebugTypeError",
            fmt::format("reduction_config must be a ReductionConfig or None, not {}.",
                        describe(reductions)));
    }
    config.reduction_config = nb::cast<const smd::ReductionConfig&>(reductions);
  }
  if (const nb::object share = get("max_overhead"); !share.is_none()) {
    config.max_overhead = to_share(share);
  }
  const auto read_int = [&](const char* key, int64_t& out) {
    if (const nb::object value = get(key); !value.is_none()) out = to_int(value, key);
  };
  read_int("max_interval", config.max_interval);
  read_int("flight_recorder", config.flight_recorder);
  read_int("flight_recorder_bytes", config.flight_recorder_bytes);
  config.flight_recorder_raw = nb::cast<bool>(get("flight_recorder_raw"));
  config.first_bad_tensor = nb::cast<bool>(get("first_bad_tensor"));
  return config;
}

// Making and destroying a hook may wait for a network or a disk, and for threads that need the GIL.
template <typename F>
std::shared_ptr<Hook> make(F&& make_hook) {
  auto made = [&] {
    const nb::gil_scoped_release released;
    return make_hook();
  }();
  return {check(std::move(made)).release(), [](Hook* hook) {
            if (PyGILState_GetThisThreadState() == nullptr) {  // no thread of Python, or no Python
              delete hook;
              return;
            }
            const nb::gil_scoped_acquire held;  // it may or may not have been held
            const nb::gil_scoped_release released;
            delete hook;
          }};
}

std::shared_ptr<Hook> create(nb::dict arguments) {
  smd::HookOptions options = plumbing(arguments);
  options.config = config_from(arguments);
  return make([&] { return Hook::create(std::move(options)); });
}

std::shared_ptr<Hook> from_json(std::optional<std::string> path, nb::dict arguments) {
  smd::HookOptions options = plumbing(arguments);
  return make([&] { return Hook::from_json(std::move(path), std::move(options)); });
}

// Runs f with the GIL released when it moves much memory.
template <typename F>
void run(int64_t bytes, F&& f) {
  smd::Status status;
  {
    const ReleasedGil released(bytes);
    status = f();
  }
  check(std::move(status));
}

void save_tensor(Hook& hook, nb::handle tensor_name, nb::handle value, nb::handle targets) {
  const std::string_view name = to_name(tensor_name);
  const std::vector<std::string> collections = to_strings(targets, "collections_to_write");
  // Converting a list costs; a step that saves nothing must not pay for it.
  const bool idle =
      hook.step().step >= 0 && !hook.is_step_wanted() && !hook.wants_tensor(collections);
  if (idle && !hook.is_closed() && !value.is_none() && !nb::isinstance<nb::dict>(value)) return;
  const TensorArg arg(value, name);
  if (arg.holds_strings()) {
    const std::vector<std::string_view> strings(arg.strings().begin(), arg.strings().end());
    return check(hook.save_strings(name, strings, arg.shape(), collections));
  }
  const smd::TensorView view = arg.view();
  check(smd::check(view));
  run(view.size_bytes(), [&] { return hook.save_tensor(name, view, collections); });
}

void save(Hook& hook, nb::handle tensor_name, nb::handle value) {
  const std::string_view name = to_name(tensor_name);
  if (hook.step().step >= 0 && !hook.is_step_wanted() && !hook.is_closed()) return;
  const TensorArg arg(value, name);
  if (arg.holds_strings()) {
    raise("SMDebugTypeError",
          fmt::format("'{}' holds strings: save them with save_tensor().", name));
  }
  const smd::TensorView view = arg.view();
  check(smd::check(view));
  run(view.size_bytes(), [&] { return hook.save(name, view); });
}

void save_named(Hook& hook, const std::vector<std::string>& names, nb::handle value) {
  if (names.empty() || !hook.is_step_saved()) return;
  const TensorArg arg(value, names.front());
  if (arg.holds_strings()) {
    raise("SMDebugTypeError",
          fmt::format("'{}' holds strings: only numbers can have several names.", names.front()));
  }
  const smd::TensorView view = arg.view();
  check(smd::check(view));
  run(view.size_bytes(), [&] { return hook.save_named(names, view); });
}

void save_undue(Hook& hook, nb::handle tensor_name, nb::handle value, smd::Kind kind) {
  const std::string_view name = to_name(tensor_name);
  const TensorArg arg(value, name);
  if (arg.holds_strings()) {
    raise("SMDebugTypeError", fmt::format("'{}' holds strings, not numbers.", name));
  }
  const smd::TensorView view = arg.view();
  check(smd::check(view));
  check(hook.save_undue(name, view, kind));
}

nb::dict bill(const Hook& hook) {
  const smd::Bill bill = hook.bill();
  nb::dict out;
  out["cost_secs"] = bill.cost_secs;
  out["training_secs"] = bill.training_secs;
  out["share"] = bill.share();
  out["steps"] = bill.steps;
  out["saved_steps"] = bill.saved_steps;
  out["tensors"] = bill.tensors;
  out["bytes"] = bill.bytes;
  out["left_out"] = bill.left_out;
  out["left_out_bytes"] = bill.left_out_bytes;
  out["stride"] = bill.stride;
  return out;
}

void save_scalar(Hook& hook, nb::handle scalar_name, nb::handle value, bool sm_metric,
                 std::optional<double> timestamp) {
  const std::string_view name = to_name(scalar_name);
  check(hook.save_scalar(name, to_number(value, name),
                         {.sm_metric = sm_metric, .wall_secs = timestamp}));
}

}  // namespace

void bind_hook(nb::module_& m) {
  nb::class_<Hook>(m, "Hook", nb::is_weak_referenceable())
      .def_static("create", &create, nb::arg("arguments"))
      .def_static("from_json", &from_json, nb::arg("path").none(), nb::arg("arguments"))
      .def(
          "create_twin",
          [](const Hook& h, const std::string& name, const std::string& chief, int count) {
            const smd::Worker worker{.name = name, .chief = chief, .count = count};
            return make([&] { return h.create_twin(worker); });
          },
          nb::arg("name"), nb::arg("chief"), nb::arg("count"))
      .def("begin_step", [](Hook& h) { check(h.begin_step()); })
      .def(
          "begin_step_at",
          [](Hook& h, nb::handle step) { check(h.begin_step(to_int(step, "step"))); },
          nb::arg("step"))
      .def(
          "begin_steps", [](Hook& h, int64_t count) { check(h.begin_steps(count)); },
          nb::arg("count"))
      .def("cancel_step", &Hook::cancel_step)
      .def("end_step", [](Hook& h) { check(h.end_step()); })
      .def_prop_rw("mode", &Hook::mode, &Hook::set_mode)
      .def_prop_ro("step", [](const Hook& h) { return h.step().step; })
      .def("mode_step", &Hook::mode_step, nb::arg("mode"))
      .def_prop_ro("last_saved_step", &Hook::last_saved_step)
      .def_prop_ro("committed_steps", &Hook::committed_steps)
      .def_prop_ro("training_run", &Hook::training_run)
      .def_prop_ro("is_step_wanted", &Hook::is_step_wanted)
      .def_prop_ro("is_step_saved", &Hook::is_step_saved)
      .def_prop_ro("is_next_step_saved", &Hook::is_next_step_saved)
      .def("is_saved_within", &Hook::is_saved_within, nb::arg("count"))
      .def(
          "is_collection_observed",
          [](const Hook& h, const std::string& n) { return h.is_collection_observed(n); },
          nb::arg("name"))
      .def("bill", &bill)
      .def("enter_cost", &Hook::enter_cost)
      .def("leave_cost", &Hook::leave_cost)
      .def(
          "dump_flight_recorder",
          [](Hook& h, const std::string& reason) { check(h.dump_flight_recorder(reason)); },
          nb::arg("reason"))
      .def(
          "dump_ended_steps",
          [](Hook& h, const std::string& reason) { check(h.dump_ended_steps(reason)); },
          nb::arg("reason"))
      .def_prop_ro("has_flight_recorder",
                   [](const Hook& h) { return h.flight_recorder() != nullptr; })
      .def_prop_ro(
          "flight_recorder_size",
          [](const Hook& h) { return h.flight_recorder() ? h.flight_recorder()->bytes() : 0; })
      .def(
          "wait_until_written",
          [](Hook& h, int64_t most_ms) {
            const nb::gil_scoped_release released;
            return h.wait_until_written(std::chrono::milliseconds(most_ms));
          },
          nb::arg("most_ms"))
      .def_prop_ro("first_bad_tensor", &Hook::first_bad_tensor)
      .def(
          "set_call_site",
          [](Hook& h, const std::string& module, const std::string& file, int64_t line,
             const std::string& text, const std::string& note) {
            h.set_call_site(
                {.module = module, .file = file, .line = line, .text = text, .note = note});
          },
          nb::arg("module"), nb::arg("file") = "", nb::arg("line") = 0, nb::arg("text") = "",
          nb::arg("note") = "")
      .def(
          "wants", [](Hook& h, const std::string& name) { return h.wants(name); }, nb::arg("name"))
      .def(
          "wants_tensor",
          [](Hook& h, const std::vector<std::string>& c) { return h.wants_tensor(c); },
          nb::arg("collections"))
      .def(
          "is_collection_active",
          [](const Hook& h, const std::string& n) { return h.is_collection_active(n); },
          nb::arg("name"))
      .def(
          "may_save", [](const Hook& h, const std::string& n) { return h.may_save(n); },
          nb::arg("collection"))
      .def("save", &save, nb::arg("name").none(), nb::arg("value").none())
      .def("save_named", &save_named, nb::arg("names"), nb::arg("value"),
           "Saves one tensor under those names that are wanted; its values are stored once.")
      .def("save_undue", &save_undue, nb::arg("name").none(), nb::arg("value").none(),
           nb::arg("kind"))
      .def("save_tensor", &save_tensor, nb::arg("name").none(), nb::arg("value").none(),
           nb::arg("collections").none())
      .def("save_scalar", &save_scalar, nb::arg("name").none(), nb::arg("value").none(),
           nb::arg("sm_metric") = false, nb::arg("timestamp") = nb::none())
      .def(
          "close",
          [](Hook& h, bool at_exit, bool goes_on) {
            smd::Status status;
            {
              const nb::gil_scoped_release released;
              status = h.close({.at_exit = at_exit, .goes_on = goes_on});
            }
            return status.ok() ? std::optional<std::string>() : status.error().message;
          },
          nb::arg("at_exit") = false, nb::arg("goes_on") = false,
          "The first error of the hook's life, or None.")
      .def(
          "save_more",
          [](Hook& h, const std::vector<std::string>& collections, int64_t steps) {
            check(h.save_more(collections, steps));
          },
          nb::arg("collections"), nb::arg("steps"),
          "The values of these collections at the next steps of the present mode, too.")
      .def("write_collections", [](Hook& h) { check(h.write_collections()); })
      .def_prop_ro("is_closed", &Hook::is_closed)
      .def_prop_ro("is_strict", &Hook::is_strict)
      .def_prop_ro("worker", [](const Hook& h) { return h.worker().name; })
      .def_prop_ro("chief_worker", [](const Hook& h) { return h.worker().chief; })
      .def_prop_ro("num_workers", [](const Hook& h) { return h.worker().count; })
      .def_prop_ro("include_collections", &Hook::include_collections)
      .def_prop_ro("collections", &Hook::shared_collections)
      .def("set_collections", &Hook::set_collections, nb::arg("collections"))
      .def_prop_ro("save_config", &Hook::save_config)
      .def_prop_ro("reduction_config", &Hook::reduction_config)
      .def_prop_ro("out_dir", [](const Hook& h) { return h.config().out_dir; })
      .def_prop_ro("tensorboard_dir", [](const Hook& h) { return h.config().tensorboard_dir; })
      .def_prop_ro("export_tensorboard",
                   [](const Hook& h) { return h.config().export_tensorboard; })
      .def_prop_ro("dry_run", [](const Hook& h) { return h.config().dry_run; })
      .def_prop_ro("save_all", [](const Hook& h) { return h.config().save_all; })
      .def_prop_ro("include_regex", [](const Hook& h) { return h.config().include_regex; })
      .def_prop_ro("exclude_regex", [](const Hook& h) { return h.config().exclude_regex; })
      .def_prop_ro(
          "save_all_workers",
          [](const Hook& h) { return h.config().include_workers == smd::IncludeWorkers::all; })
      .def_prop_ro("peak_queue_bytes", &Hook::peak_queue_bytes);
  m.def("config_file_path", [] { return smd::Environment::of_process().config_file_path(); });
  m.def("use_smdebug", [] { return check(smd::Environment::of_process().use_smdebug()); });
  m.def("in_sagemaker", [] { return smd::Environment::of_process().in_sagemaker(); });
}

}  // namespace smdebug
