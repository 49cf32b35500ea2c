#pragma once

// Tells a forward from what only looks like one: recomputation in backward, tracing, exporting.
// Calls builtin functions of PyTorch only, which compilers of Python code leave alone.

#include <nanobind/nanobind.h>

namespace smdebug {

class ReplayCheck final {
 public:
  // task_id(): -1 unless backward is running; tracing(): whether a forward is being traced;
  // compiler: its flag `_is_exporting_flag` tells whether one is being exported.
  explicit ReplayCheck(const nanobind::dict& parts)
      : task_id_(parts["task_id"]), tracing_(parts["tracing"]), compiler_(parts["compiler"]) {}

  bool is_replay() const {
    return nanobind::cast<int64_t>(task_id_()) != -1 || tracing_().is(Py_True) ||
           nanobind::getattr(compiler_, exporting_, nanobind::handle(Py_False)).is(Py_True);
  }

 private:
  nanobind::object task_id_;
  nanobind::object tracing_;
  nanobind::object compiler_;
  nanobind::object exporting_ = nanobind::steal(PyUnicode_InternFromString("_is_exporting_flag"));
};

}  // namespace smdebug
