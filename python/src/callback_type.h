#pragma once

// What the types of callbacks have in common: they and the hook that they belong to refer to each
// other, so Python's collector must see through them, and copies of a model hold copies that do
// nothing. A type has traverse(visit, arg), clear() and, if it can be called, called(arguments),
// which Python reaches without a look at attributes. The GIL is held.

#include <nanobind/nanobind.h>

#include <utility>

namespace smdebug {

namespace nb = nanobind;

template <typename T>
int traverse_callback(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}

template <typename T>
int clear_callback(PyObject* self) {
  nb::inst_ptr<T>(self)->clear();
  return 0;
}

// What a callback is called with.
struct CallArguments {
  PyObject* positional;  // a tuple
  PyObject* keywords;    // a dict, or nullptr

  size_t size() const { return static_cast<size_t>(NB_TUPLE_GET_SIZE(positional)); }
  nb::handle operator[](size_t i) const {
    return NB_TUPLE_GET_ITEM(positional, static_cast<Py_ssize_t>(i));
  }
  // Throws Python's TypeError unless there are `count` arguments without names.
  void expect(size_t count) const {
    if (size() == count && (keywords == nullptr || NB_DICT_GET_SIZE(keywords) == 0)) return;
    PyErr_Format(PyExc_TypeError, "%zu arguments were expected, not %zu.", count, size());
    throw nb::python_error();
  }
};

template <typename T>
PyObject* call_callback(PyObject* self, PyObject* positional, PyObject* keywords) {
  try {
    return nb::inst_ptr<T>(self)->called(CallArguments{positional, keywords}).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// For nb::type_slots.
template <typename T>
inline PyType_Slot kSharedSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_callback<T>)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_callback<T>)},
    {0, nullptr}};
template <typename T>
inline PyType_Slot kCallbackSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_callback<T>)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_callback<T>)},
    {Py_tp_call, reinterpret_cast<void*>(call_callback<T>)},
    {0, nullptr}};

// A copy does nothing, and it is what a file holds.
template <typename T>
void bind_copying(nb::class_<T>& callback) {
  callback.def("__copy__", [](const T&) { return T(); })
      .def("__deepcopy__", [](const T&, nb::handle) { return T(); })
      .def("__reduce__",
           [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple()); });
}

// As long as it lives, compilers of Python code do not look into what is called. `isolate` sets
// what they look with and gives what it was before; None: there is no such compiler.
class Isolation final {
 public:
  explicit Isolation(nb::object isolate) : isolate_(std::move(isolate)) {
    if (!isolate_.is_none()) before_ = isolate_(nb::none());
  }
  ~Isolation() {
    if (isolate_.is_none()) return;
    try {
      isolate_(before_);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("smdebug");
    }
  }
  Isolation(const Isolation&) = delete;
  Isolation& operator=(const Isolation&) = delete;

  // A compiler was looking.
  bool was_looking() const { return before_.is_valid() && !before_.is_none(); }

 private:
  const nb::object isolate_;
  nb::object before_;
};

}  // namespace smdebug
