// Collection and CollectionSet as Python classes; the package derives its own from them.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/values.h"
#include "smd/collection/builtin.h"
#include "smd/collection/collection_set.h"

namespace smdebug {
namespace {

using smd::Collection;
using smd::CollectionSet;

void set_reductions(Collection& collection, nb::handle value) {
  if (!value.is_none() && !nb::isinstance<smd::ReductionConfig>(value)) {
    raise("SMDebugTypeError",
          fmt::format("reduction_config must be a ReductionConfig or None, not {}.",
                      describe(value)));
  }
  collection.set_reduction_config(
      value.is_none() ? nullptr : nb::cast<std::shared_ptr<smd::ReductionConfig>>(value));
}

void set_saving(Collection& collection, nb::handle value) {
  if (value.is_none()) return collection.set_save_config(nullptr);
  const nb::object parsed =
      nb::module_::import_("smdebug._core").attr("SaveConfig").attr("parse")(value);
  collection.set_save_config(nb::cast<std::shared_ptr<smd::SaveConfig>>(parsed));
}

void set_names(Collection& collection, nb::handle value) {
  collection.set_tensor_names(to_strings(value, "tensor_names"));
}

nb::set name_set(const Collection& collection) {
  nb::set out;
  for (const std::string& name : collection.tensor_names())
    out.add(nb::str(name.data(), name.size()));
  return out;
}

Collection from_json_text(const std::string& text) {
  const smd::Json json = check(smd::parse_json(text, ""));
  std::string name;
  if (json.is_object() && json.contains("name") && json["name"].is_string()) {
    name = json["name"].get<std::string>();
  }
  return check(Collection::from_json(std::move(name), json));
}

void init(Collection* self, const std::string& name, nb::object include_regex,
          nb::object tensor_names, nb::object reduction_config, nb::object save_config,
          nb::object save_histogram, nb::object exclude_regex) {
  Collection collection(name);
  check(collection.set_include_regex(to_strings(include_regex, "include_regex")));
  check(collection.set_exclude_regex(to_strings(exclude_regex, "exclude_regex")));
  set_names(collection, tensor_names);
  set_reductions(collection, reduction_config);
  set_saving(collection, save_config);
  collection.set_save_histogram(to_bool(save_histogram, "save_histogram"));
  new (self) Collection(std::move(collection));
}

void bind_one(nb::module_& m) {
  nb::class_<Collection>(m, "Collection", nb::dynamic_attr(), nb::is_weak_referenceable(),
                         "A named group of tensors with its own rules for saving.")
      .def("__init__", &init, nb::arg("name"), nb::arg("include_regex") = nb::none(),
           nb::arg("tensor_names") = nb::none(), nb::arg("reduction_config") = nb::none(),
           nb::arg("save_config") = nb::none(), nb::arg("save_histogram").none() = true,
           nb::arg("exclude_regex") = nb::none())
      .def_prop_ro("name", &Collection::name)
      .def(
          "include",
          [](Collection& c, nb::object patterns) {
            for (const auto& pattern : to_strings(patterns, "regex")) check(c.include(pattern));
          },
          nb::arg("t"), "Adds patterns of tensors that belong to the collection.")
      .def(
          "exclude",
          [](Collection& c, nb::object patterns) {
            for (const auto& pattern : to_strings(patterns, "regex")) check(c.exclude(pattern));
          },
          nb::arg("regex"), "Adds patterns of tensors that do not belong to it.")
      .def_prop_rw(
          "include_regex", &Collection::include_regex,
          [](Collection& c, nb::object v) {
            check(c.set_include_regex(to_strings(v, "include_regex")));
          },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "exclude_regex", &Collection::exclude_regex,
          [](Collection& c, nb::object v) {
            check(c.set_exclude_regex(to_strings(v, "exclude_regex")));
          },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "tensor_names", &name_set, [](Collection& c, nb::object v) { set_names(c, v); },
          nb::for_getter(nb::sig("def tensor_names(self, /) -> set[str]")),
          nb::for_setter(nb::arg("value").none()))
      .def("add_tensor_name", &Collection::add_tensor_name, nb::arg("tname"))
      .def(
          "remove_tensor_name",
          [](Collection& c, const std::string& name) { c.remove_tensor_name(name); },
          nb::arg("tname"))
      .def("has_tensor_name", &Collection::has_tensor_name, nb::arg("tname"))
      .def_prop_ro("_revision", &Collection::revision, "Grows when somebody changes what it holds.")
      .def("holds", &Collection::holds, nb::arg("tensor_name"),
           "Whether the name is listed, or a pattern includes it and none excludes it.")
      .def_prop_rw(
          "reduction_config", &Collection::reduction_config, &set_reductions,
          nb::for_getter(nb::sig("def reduction_config(self, /) -> ReductionConfig | None")),
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw("save_config", &Collection::save_config, &set_saving,
                   nb::for_getter(nb::sig("def save_config(self, /) -> SaveConfig | None")),
                   nb::for_setter(nb::arg("value").none()))
      .def_prop_rw(
          "save_histogram", &Collection::save_histogram,
          [](Collection& c, nb::object v) { c.set_save_histogram(to_bool(v, "save_histogram")); })
      .def("to_json_dict",
           [](const Collection& c) { return to_python(check(smd::parse_json(c.to_json(), ""))); })
      .def("to_json", &Collection::to_json)
      .def(
          "__eq__",
          [](const Collection& a, nb::object b) {
            return nb::isinstance<Collection>(b) && a == nb::cast<const Collection&>(b);
          },
          nb::arg("other").none())
      .def("__hash__", [](const Collection& c) { return std::hash<std::string>()(c.name()); })
      .def("__repr__",
           [](const Collection& c) { return fmt::format("Collection({})", c.to_json()); })
      .def("__getstate__", &Collection::to_json)
      .def("__setstate__", [](Collection* self, const std::string& state) {
        new (self) Collection(from_json_text(state));
      });
}

void bind_set(nb::module_& m) {
  nb::class_<CollectionSet>(m, "CollectionSet", nb::dynamic_attr(), nb::is_weak_referenceable(),
                            "Collections in the order of their creation.")
      .def(nb::init<>())
      .def(
          "create", [](CollectionSet& s, const std::string& name) { return check(s.create(name)); },
          nb::arg("name"))
      .def(
          "find", [](const CollectionSet& s, const std::string& name) { return s.find(name); },
          nb::arg("name"), "None if there is none of that name.")
      .def(
          "add_collection",
          [](CollectionSet& s, std::shared_ptr<Collection> c) { check(s.add(std::move(c))); },
          nb::arg("collection"))
      .def("names", &CollectionSet::names)
      .def("all", [](const CollectionSet& s) { return s.collections(); })
      .def_prop_rw("num_workers", &CollectionSet::num_workers,
                   [](CollectionSet& s, nb::object v) {
                     check(s.set_num_workers(to_int(v, "num_workers")));
                   })
      .def("to_json", &CollectionSet::to_json)
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& source) {
            return std::make_shared<CollectionSet>(check(CollectionSet::from_json(text, source)));
          },
          nb::arg("text"), nb::arg("source") = "")
      .def(
          "__eq__",
          [](const CollectionSet& a, nb::object b) {
            return nb::isinstance<CollectionSet>(b) && a == nb::cast<const CollectionSet&>(b);
          },
          nb::arg("other").none())
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<size_t>(self.ptr()) >> 4; });
}

}  // namespace

void bind_collection(nb::module_& m) {
  bind_one(m);
  bind_set(m);
  nb::list builtin;
  for (const auto& collection : smd::plain_collections()) {
    builtin.append(nb::make_tuple(collection.name, collection.patterns, collection.raw_only));
  }
  m.attr("PLAIN_COLLECTIONS") = builtin;
  m.attr("PLAIN_DEFAULT_COLLECTIONS") = nb::cast(smd::plain_default_collections());
  m.def("is_scalar_collection", [](const std::string& n) { return smd::is_scalar_collection(n); });
  m.def("is_metric_collection", [](const std::string& n) { return smd::is_metric_collection(n); });
}

}  // namespace smdebug
