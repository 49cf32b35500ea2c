// SaveConfigMode, SaveConfig and ReductionConfig as Python classes.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/values.h"
#include "smd/config/hook_config.h"
#include "smd/config/reduction_config.h"
#include "smd/config/save_config.h"

namespace smdebug {
namespace {

using smd::Json;
using smd::Mode;
using smd::ReductionConfig;
using smd::SaveConfig;
using smd::SaveConfigMode;

SaveConfigMode make_mode(nb::handle interval, nb::handle start, nb::handle end, nb::handle steps,
                         nb::handle when_nan) {
  SaveConfigMode mode;
  if (!interval.is_none()) mode.save_interval = to_int(interval, "save_interval");
  if (!start.is_none()) mode.start_step = to_int(start, "start_step");
  mode.end_step = to_optional_int(end, "end_step");
  if (!steps.is_none()) mode.save_steps = to_int_list(steps, "save_steps");
  mode.when_nan = to_comma_list(when_nan, "when_nan");
  check(mode.normalize());
  return mode;
}

// Changes a copy and keeps it only if it is valid.
template <typename Change>
void change(SaveConfigMode& mode, Change&& apply) {
  SaveConfigMode changed = mode;
  apply(changed);
  check(changed.normalize());
  mode = std::move(changed);
}

std::optional<Mode> mode_of_key(nb::handle key) {
  if (nb::isinstance<Mode>(key)) return nb::cast<Mode>(key);
  if (nb::isinstance<nb::str>(key)) {
    const auto text = nb::cast<std::string>(key);
    for (Mode mode : smd::kModes) {
      if (text == smd::name_of(mode)) return mode;
    }
  }
  return std::nullopt;
}

// Parameters of one mode; those of `defaults` where `params` has none.
SaveConfigMode mode_from_dict(nb::handle params, nb::handle defaults,
                              const std::string& name = "save_config") {
  nb::dict merged;
  for (nb::handle source : {defaults, params}) {
    if (source.is_none()) continue;
    if (!nb::isinstance<nb::dict>(source)) {
      raise("SMDebugValueError", fmt::format("A dict was expected, not {}.", describe(source)));
    }
    merged.update(nb::borrow<nb::dict>(source));
  }
  return check(SaveConfigMode::from_json(to_json(merged, "save_config"), name));
}

std::optional<SaveConfigMode> mode_config_of(nb::handle value, nb::handle key,
                                             nb::handle defaults = nb::none()) {
  if (value.is_none()) return std::nullopt;
  if (nb::isinstance<SaveConfigMode>(value)) return nb::cast<SaveConfigMode>(value);
  if (nb::isinstance<nb::dict>(value)) {
    return mode_from_dict(value, defaults, describe(key));
  }
  raise("SMDebugValueError",
        fmt::format("The save config of {} must be a SaveConfigMode or None, not {}.",
                    describe(key), describe(value)));
}

SaveConfig from_mode_map(const nb::dict& map, bool names_allowed,
                         nb::handle defaults = nb::none()) {
  SaveConfig::Modes modes;
  for (auto [key, value] : map) {
    const auto mode = mode_of_key(key);
    if (!mode || (!names_allowed && !nb::isinstance<Mode>(key))) {
      raise("SMDebugValueError",
            fmt::format("{} is not a mode; expected a member of smdebug.modes.", describe(key)));
    }
    modes[smd::index_of(*mode)] = mode_config_of(value, key, defaults);
  }
  return check(SaveConfig::from_modes(std::move(modes)));
}

// A dict: modes, or parameters that hold for every mode. `defaults`: parameters that are not given.
SaveConfig from_dict(const nb::dict& dict, nb::handle defaults = nb::none()) {
  size_t modes = 0;
  for (auto [key, value] : dict) modes += mode_of_key(key) ? 1 : 0;
  if (modes == dict.size() && modes > 0) return from_mode_map(dict, true, defaults);
  if (modes > 0) {
    raise("SMDebugValueError",
          fmt::format("A save config lists modes or parameters, not both: {}.", describe(dict)));
  }
  return check(SaveConfig::broadcast(mode_from_dict(dict, defaults)));
}

SaveConfig make_config(nb::handle modes, nb::handle interval, nb::handle start, nb::handle end,
                       nb::handle steps, nb::handle when_nan) {
  if (modes.is_none()) {
    return check(SaveConfig::broadcast(make_mode(interval, start, end, steps, when_nan)));
  }
  if (!nb::isinstance<nb::dict>(modes)) {
    raise("SMDebugValueError",
          fmt::format("mode_save_configs must be a dict of modes, not {}.", describe(modes)));
  }
  for (nb::handle other : {interval, start, end, steps, when_nan}) {
    if (other.is_none()) continue;
    raise("SMDebugValueError",
          "mode_save_configs and parameters for all modes exclude each other; put the parameters "
          "into "
          "the SaveConfigMode of each mode.");
  }
  return from_mode_map(nb::borrow<nb::dict>(modes), false);
}

// None, SaveConfig, SaveConfigMode or dict; a SaveConfig stays the same object.
nb::object parse(nb::handle value) {
  if (value.is_none()) return nb::cast(std::make_shared<SaveConfig>());
  if (nb::isinstance<SaveConfig>(value)) return nb::borrow(value);
  if (nb::isinstance<SaveConfigMode>(value)) {
    return nb::cast(std::make_shared<SaveConfig>(
        check(SaveConfig::broadcast(nb::cast<SaveConfigMode>(value)))));
  }
  if (nb::isinstance<nb::dict>(value)) {
    return nb::cast(std::make_shared<SaveConfig>(from_dict(nb::borrow<nb::dict>(value))));
  }
  raise("SMDebugTypeError",
        fmt::format("A save config must be a SaveConfig, SaveConfigMode, dict or None, not {}.",
                    describe(value)));
}

std::vector<std::string> names(const std::vector<smd::Reduction>& reductions) {
  std::vector<std::string> out;
  for (smd::Reduction reduction : reductions) out.emplace_back(reduction.op());
  return out;
}

ReductionConfig make_reductions(nb::handle reductions, nb::handle abs_reductions, nb::handle norms,
                                nb::handle abs_norms, nb::handle raw, nb::handle shape) {
  return check(
      ReductionConfig::create({.reductions = to_comma_list(reductions, "reductions"),
                               .abs_reductions = to_comma_list(abs_reductions, "abs_reductions"),
                               .norms = to_comma_list(norms, "norms"),
                               .abs_norms = to_comma_list(abs_norms, "abs_norms"),
                               .save_raw_tensor = to_bool(raw, "save_raw_tensor"),
                               .save_shape = to_bool(shape, "save_shape")}));
}

template <typename T>
std::string json_text(const T& value) {
  return smd::dump_json(value.to_json());
}

void bind_save_config_mode(nb::module_& m) {
  nb::class_<SaveConfigMode>(m, "SaveConfigMode", nb::dynamic_attr(), nb::is_weak_referenceable(),
                             "At which steps of one mode tensors are saved.")
      .def(
          "__init__",
          [](SaveConfigMode* self, nb::object interval, nb::object start, nb::object end,
             nb::object steps, nb::object when_nan) {
            new (self) SaveConfigMode(make_mode(interval, start, end, steps, when_nan));
          },
          nb::arg("save_interval") = nb::none(), nb::arg("start_step") = nb::none(),
          nb::arg("end_step") = nb::none(), nb::arg("save_steps") = nb::none(),
          nb::arg("when_nan") = nb::none())
      .def_prop_rw(
          "save_interval", [](const SaveConfigMode& s) { return s.save_interval; },
          [](SaveConfigMode& s, nb::object v) {
            change(s, [&](SaveConfigMode& c) { c.save_interval = to_int(v, "save_interval"); });
          })
      .def_prop_rw(
          "start_step", [](const SaveConfigMode& s) { return s.start_step; },
          [](SaveConfigMode& s, nb::object v) {
            change(s, [&](SaveConfigMode& c) { c.start_step = to_int(v, "start_step"); });
          })
      .def_prop_rw(
          "end_step", [](const SaveConfigMode& s) { return s.end_step; },
          [](SaveConfigMode& s, nb::object v) {
            change(s, [&](SaveConfigMode& c) { c.end_step = to_optional_int(v, "end_step"); });
          },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "save_steps", [](const SaveConfigMode& s) { return s.save_steps; },
          [](SaveConfigMode& s, nb::object v) {
            change(s, [&](SaveConfigMode& c) { c.save_steps = to_int_list(v, "save_steps"); });
          })
      .def_prop_rw(
          "when_nan", [](const SaveConfigMode& s) { return s.when_nan; },
          [](SaveConfigMode& s, nb::object v) {
            change(s, [&](SaveConfigMode& c) { c.when_nan = to_comma_list(v, "when_nan"); });
          })
      .def(
          "should_save_step",
          [](const SaveConfigMode& s, nb::object step) {
            return s.should_save(to_int(step, "step_num"));
          },
          nb::arg("step_num"))
      .def("to_json_dict", [](const SaveConfigMode& s) { return to_python(s.to_json()); })
      .def("to_json", &json_text<SaveConfigMode>)
      .def_static(
          "from_json",
          [](const std::string& text) {
            return check(
                SaveConfigMode::from_json(check(smd::parse_json(text, "")), "save_config"));
          },
          nb::arg("json_str"))
      .def_static(
          "from_dict",
          [](nb::object params, nb::object defaults) { return mode_from_dict(params, defaults); },
          nb::arg("params"), nb::arg("default_values") = nb::none())
      .def(nb::self == nb::self)
      .def("__repr__",
           [](const SaveConfigMode& s) { return fmt::format("SaveConfigMode({})", json_text(s)); })
      .def("__getstate__", &json_text<SaveConfigMode>)
      .def("__setstate__", [](SaveConfigMode* self, const std::string& state) {
        new (self) SaveConfigMode(
            check(SaveConfigMode::from_json(check(smd::parse_json(state, "")), "save_config")));
      });
}

void bind_save_config(nb::module_& m) {
  nb::class_<SaveConfig>(m, "SaveConfig", nb::dynamic_attr(), nb::is_weak_referenceable(),
                         "At which steps tensors are saved, for each mode.")
      .def(
          "__init__",
          [](SaveConfig* self, nb::object modes, nb::object interval, nb::object start,
             nb::object end, nb::object steps, nb::object when_nan) {
            new (self) SaveConfig(make_config(modes, interval, start, end, steps, when_nan));
          },
          nb::arg("mode_save_configs") = nb::none(), nb::arg("save_interval") = nb::none(),
          nb::arg("start_step") = nb::none(), nb::arg("end_step") = nb::none(),
          nb::arg("save_steps") = nb::none(), nb::arg("when_nan") = nb::none())
      .def_prop_ro("mode_save_configs",
                   [](nb::handle self) {
                     nb::dict out;
                     SaveConfig& config = nb::cast<SaveConfig&>(self);
                     for (Mode mode : smd::kModes) {
                       SaveConfigMode* own = config.mutable_mode(mode);
                       nb::object value = nb::none();
                       if (own != nullptr) {
                         value = nb::cast(own, nb::rv_policy::reference_internal, self);
                       }
                       out[nb::cast(mode)] = value;
                     }
                     return out;
                   })
      .def(
          "get_save_config",
          [](SaveConfig& self, Mode mode) {
            SaveConfigMode* own = self.mutable_mode(mode);
            if (own == nullptr) {
              raise("SMDebugValueError",
                    fmt::format("The save config of mode {} is not set yet: it inherits.",
                                smd::name_of(mode)));
            }
            return own;
          },
          nb::arg("mode"), nb::rv_policy::reference_internal)
      .def(
          "set_save_config",
          [](SaveConfig& self, Mode mode, nb::object config) {
            check(self.set_mode(mode, mode_config_of(config, nb::cast(mode))));
          },
          nb::arg("mode"), nb::arg("save_config_mode").none())
      .def(
          "should_save_step",
          [](const SaveConfig& self, Mode mode, nb::object step) {
            if (!self.mode(mode)) {
              raise("SMDebugValueError",
                    fmt::format("The save config of mode {} is not set yet: it inherits.",
                                smd::name_of(mode)));
            }
            return self.should_save(mode, to_int(step, "step_num"));
          },
          nb::arg("mode"), nb::arg("step_num"))
      .def("merge_default_save_config", &SaveConfig::merge_defaults, nb::arg("default_save_config"))
      .def_prop_rw(
          "save_interval", [](const SaveConfig& s) { return check(s.save_interval()); },
          [](SaveConfig& s, nb::object v) {
            check(s.set_save_interval(to_int(v, "save_interval")));
          })
      .def_prop_rw(
          "start_step", [](const SaveConfig& s) { return check(s.start_step()); },
          [](SaveConfig& s, nb::object v) { check(s.set_start_step(to_int(v, "start_step"))); })
      .def_prop_rw(
          "end_step", [](const SaveConfig& s) { return check(s.end_step()); },
          [](SaveConfig& s, nb::object v) {
            check(s.set_end_step(to_optional_int(v, "end_step")));
          },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "save_steps", [](const SaveConfig& s) { return check(s.save_steps()); },
          [](SaveConfig& s, nb::object v) {
            check(s.set_save_steps(to_int_list(v, "save_steps")));
          })
      .def_prop_rw(
          "when_nan", [](const SaveConfig& s) { return check(s.when_nan()); },
          [](SaveConfig& s, nb::object v) { check(s.set_when_nan(to_comma_list(v, "when_nan"))); })
      .def("to_json_dict", [](const SaveConfig& s) { return to_python(s.to_json()); })
      .def("to_json", &json_text<SaveConfig>)
      .def_static(
          "from_json",
          [](const std::string& text) {
            return check(SaveConfig::from_json(check(smd::parse_json(text, ""))));
          },
          nb::arg("json_str"))
      .def_static(
          "from_dict",
          [](nb::object params, nb::object defaults) {
            if (!nb::isinstance<nb::dict>(params)) {
              raise("SMDebugValueError",
                    fmt::format("A dict was expected, not {}.", describe(params)));
            }
            return from_dict(nb::borrow<nb::dict>(params), defaults);
          },
          nb::arg("params"), nb::arg("default_values") = nb::none())
      .def_static(
          "from_save_config_mode",
          [](const SaveConfigMode& mode) { return check(SaveConfig::broadcast(mode)); },
          nb::arg("save_config_mode"))
      .def_static("parse", &parse, nb::arg("obj").none())
      .def(nb::self == nb::self)
      .def("__repr__",
           [](const SaveConfig& s) { return fmt::format("SaveConfig({})", json_text(s)); })
      .def("__getstate__", &json_text<SaveConfig>)
      .def("__setstate__", [](SaveConfig* self, const std::string& state) {
        new (self) SaveConfig(check(SaveConfig::from_json(check(smd::parse_json(state, "")))));
      });
}

void bind_reduction_config(nb::module_& m) {
  nb::class_<ReductionConfig>(m, "ReductionConfig", nb::dynamic_attr(), nb::is_weak_referenceable(),
                              "What is saved of a tensor: statistics, its shape, the values.")
      .def(
          "__init__",
          [](ReductionConfig* self, nb::object reductions, nb::object abs_reductions,
             nb::object norms, nb::object abs_norms, nb::object raw, nb::object shape) {
            new (self) ReductionConfig(
                make_reductions(reductions, abs_reductions, norms, abs_norms, raw, shape));
          },
          nb::arg("reductions") = nb::none(), nb::arg("abs_reductions") = nb::none(),
          nb::arg("norms") = nb::none(), nb::arg("abs_norms") = nb::none(),
          nb::arg("save_raw_tensor").none() = false, nb::arg("save_shape").none() = false)
      .def_prop_ro("reductions", [](const ReductionConfig& c) { return names(c.reductions()); })
      .def_prop_ro("abs_reductions",
                   [](const ReductionConfig& c) { return names(c.abs_reductions()); })
      .def_prop_ro("norms", [](const ReductionConfig& c) { return names(c.norms()); })
      .def_prop_ro("abs_norms", [](const ReductionConfig& c) { return names(c.abs_norms()); })
      .def_prop_rw("save_raw_tensor", &ReductionConfig::save_raw_tensor,
                   [](ReductionConfig& c, nb::object v) {
                     c.set_save_raw_tensor(to_bool(v, "save_raw_tensor"));
                   })
      .def_prop_rw(
          "save_shape", &ReductionConfig::save_shape,
          [](ReductionConfig& c, nb::object v) { c.set_save_shape(to_bool(v, "save_shape")); })
      .def("to_json_dict", [](const ReductionConfig& c) { return to_python(c.to_json()); })
      .def("to_json", &json_text<ReductionConfig>)
      .def_static(
          "from_json",
          [](const std::string& text) {
            return check(ReductionConfig::from_json(check(smd::parse_json(text, ""))));
          },
          nb::arg("json_str"))
      .def_static(
          "from_dict",
          [](nb::object params) -> std::optional<ReductionConfig> {
            if (params.is_none()) return std::nullopt;
            if (!nb::isinstance<nb::dict>(params)) {
              raise("SMDebugValueError",
                    fmt::format("A dict was expected, not {}.", describe(params)));
            }
            return check(ReductionConfig::from_json(to_json(params, "reduction_config")));
          },
          nb::arg("params").none())
      .def(nb::self == nb::self)
      .def(
          "__repr__",
          [](const ReductionConfig& c) { return fmt::format("ReductionConfig({})", json_text(c)); })
      .def("__getstate__", &json_text<ReductionConfig>)
      .def("__setstate__", [](ReductionConfig* self, const std::string& state) {
        new (self)
            ReductionConfig(check(ReductionConfig::from_json(check(smd::parse_json(state, "")))));
      });
}

template <typename T>
nb::object or_none(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nb::dict describe_collection(const smd::CollectionConfig& config) {
  nb::dict out;
  out["name"] = config.name;
  out["include_regex"] = config.include_regex;
  out["exclude_regex"] = config.exclude_regex;
  out["save_histogram"] = or_none(config.save_histogram);
  out["save_config"] = or_none(config.save_config);
  out["reduction_config"] = or_none(config.reduction_config);
  return out;
}

// The job's JSON as a dict of the constructor's arguments, "collections" and "warnings".
nb::dict parse_job(nb::object document, int64_t default_save_interval) {
  auto [config, warnings] = check(smd::parse_hook_config(to_json(document, "config"),
                                                         {.save_interval = default_save_interval}));
  nb::dict out;
  out["out_dir"] = config.out_dir;
  out["export_tensorboard"] = config.export_tensorboard;
  out["tensorboard_dir"] = or_none(config.tensorboard_dir);
  out["dry_run"] = config.dry_run;
  out["save_all"] = config.save_all;
  out["include_regex"] = config.include_regex;
  out["exclude_regex"] = config.exclude_regex;
  out["include_collections"] = config.include_collections;
  out["include_workers"] = std::string(smd::name_of(config.include_workers));
  out["durable"] = std::string(smd::name_of(config.durable));
  out["overflow"] = std::string(smd::name_of(config.overflow));
  out["layout"] =
      config.layout ? nb::object(nb::cast(std::string(smd::name_of(*config.layout)))) : nb::none();
  out["save_config"] = or_none(config.save_config);
  out["reduction_config"] = or_none(config.reduction_config);
  nb::list collections;
  for (const auto& collection : config.collections)
    collections.append(describe_collection(collection));
  out["collections"] = collections;
  out["warnings"] = warnings;
  return out;
}

}  // namespace

void bind_config(nb::module_& m) {
  bind_save_config_mode(m);
  bind_save_config(m);
  bind_reduction_config(m);
  m.def("parse_hook_config", &parse_job, nb::arg("document"),
        nb::arg("default_save_interval") = smd::kDefaultSaveInterval,
        "What the JSON of a training job says, as a dict.");
  m.def(
      "parse_json",
      [](const std::string& text, const std::string& source) {
        return to_python(check(smd::parse_json(text, source)));
      },
      nb::arg("text"), nb::arg("source") = "", "Like json.loads; trailing commas are accepted.");
  m.def("reduction_names", [] {
    std::vector<std::pair<std::string, bool>> out;
    for (const auto* kind : smd::reduction_kinds()) out.emplace_back(kind->name, kind->is_norm);
    return out;
  });
}

}  // namespace smdebug
