#include "python/src/values.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <charconv>

#include "python/src/errors.h"
#include "smd/config/json_value.h"

namespace smdebug {

std::string describe(nb::handle value) {
  constexpr size_t kLongest = 80;
  std::string text = nb::cast<std::string>(nb::repr(value));
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

int64_t to_int(nb::handle value, const char* name) {
  if (nb::isinstance<nb::str>(value)) {
    // A string that is no number raises what int() raises: a plain ValueError.
    const nb::object number = nb::module_::import_("builtins").attr("int")(value);
    return nb::cast<int64_t>(number);
  }
  if (PyIndex_Check(value.ptr()) == 0 || nb::isinstance<nb::bool_>(value)) {
    raise("SMDebugValueError", fmt::format("{} must be a whole number, not {}.", name, describe(value)));
  }
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int64_t number = 0;
  if (!nb::try_cast(index, number)) {
    raise("SMDebugValueError", fmt::format("{} is out of range: {}.", name, describe(value)));
  }
  return number;
}

std::optional<int64_t> to_optional_int(nb::handle value, const char* name) {
  if (value.is_none()) return std::nullopt;
  return to_int(value, name);
}

std::vector<int64_t> to_int_list(nb::handle value, const char* name) {
  const bool iterable = nb::hasattr(value, "__iter__") && !nb::isinstance<nb::str>(value) &&
                        !nb::isinstance<nb::dict>(value);
  if (!iterable) {
    raise("SMDebugValueError",
          fmt::format("{} must be a list of whole numbers, not {}.", name, describe(value)));
  }
  std::vector<int64_t> numbers;
  for (nb::handle item : nb::borrow<nb::iterable>(value)) {
    if (nb::isinstance<nb::str>(item)) {
      raise("SMDebugValueError",
            fmt::format("{} must be a list of whole numbers, not {}.", name, describe(value)));
    }
    numbers.push_back(to_int(item, name));
  }
  return numbers;
}

std::vector<std::string> to_strings(nb::handle value, const char* name) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value)};
  if (!nb::hasattr(value, "__iter__") || nb::isinstance<nb::dict>(value)) {
    raise("SMDebugTypeError",
          fmt::format("{} must be a string or a list of strings, not {}.", name, describe(value)));
  }
  std::vector<std::string> out;
  for (nb::handle item : nb::borrow<nb::iterable>(value)) {
    if (item.is_none()) {
      raise("SMDebugTypeError", fmt::format("{} must not hold None: {}.", name, describe(value)));
    }
    for (std::string& text : to_strings(item, name)) out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::string> to_comma_list(nb::handle value, const char* name) {
  if (nb::isinstance<nb::str>(value)) return smd::split_list(nb::cast<std::string>(value));
  return to_strings(value, name);
}

std::string_view to_name(nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) {
    raise("SMDebugTypeError", fmt::format("A tensor name must be a string, not {}.", describe(value)));
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    raise("SMDebugValueError", fmt::format("The tensor name {} is not valid Unicode.", describe(value)));
  }
  return {text, static_cast<size_t>(size)};
}

bool to_bool(nb::handle value, const char* name) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  raise("SMDebugValueError", fmt::format("{} must be True or False, not {}.", name, describe(value)));
}

nb::object to_python(const smd::Json& json) {
  return nb::module_::import_("json").attr("loads")(smd::dump_json(json));
}

smd::Json to_json(nb::handle value, const char* name) {
  nb::object text;
  try {
    // NumPy's whole numbers are no JSON by themselves.
    const nb::object as_int = nb::module_::import_("operator").attr("index");
    text = nb::module_::import_("json").attr("dumps")(value, nb::arg("default") = as_int);
  } catch (const nb::python_error& e) {
    raise("SMDebugTypeError", fmt::format("{} must hold plain values, not {}: {}", name, describe(value),
                                          nb::cast<std::string>(nb::str(e.value()))));
  }
  return check(smd::parse_json(nb::cast<std::string>(text), name));
}

}  // namespace smdebug
