#include "python/src/errors.h"

namespace smdebug {
namespace {

const char* class_of(smd::ErrorCode code) {
  using enum smd::ErrorCode;
  switch (code) {
    case invalid_argument: return "SMDebugValueError";
    case not_found: return "SMDebugFileNotFoundError";
    case unsupported: return "SMDebugNotImplementedError";
    case not_yet:
    case end_of_data:
    case truncated:
    case corrupt:
    case io:
    case closed:
    case internal: return "SMDebugRuntimeError";
  }
  return "SMDebugRuntimeError";
}

}  // namespace

nb::object to_text(std::string_view message) {
  return nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                                        "backslashreplace"));
}

void raise(const char* class_name, std::string_view message) {
  nb::module_ exceptions = nb::module_::import_("smdebug.exceptions");
  const nb::object source = nb::hasattr(exceptions, class_name)
                                ? nb::object(exceptions)
                                : nb::object(nb::module_::import_("builtins"));
  const nb::object type = source.attr(class_name);
  PyErr_SetObject(type.ptr(), to_text(message).ptr());
  throw nb::python_error();
}

void raise(const smd::Error& error) { raise(class_of(error.code), error.message); }

}  // namespace smdebug
