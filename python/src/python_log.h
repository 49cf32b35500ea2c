#pragma once

// The core's messages in Python's hands. Thread-safe: takes the GIL.

#include <nanobind/nanobind.h>

#include "python/src/errors.h"
#include "smd/base/log.h"

namespace smdebug {

namespace nb = nanobind;

// Forwards messages to a Python callable f(level, message).
class PythonLog final : public smd::Log {
 public:
  explicit PythonLog(nb::callable sink) : sink_(std::move(sink)) {}
  ~PythonLog() override {
    if (Py_IsInitialized() == 0) {
      (void)sink_.release();
      return;
    }
    const nb::gil_scoped_acquire gil;
    sink_.reset();
  }
  void write(smd::LogLevel level, std::string_view message) override {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    try {
      sink_(static_cast<int>(level), to_text(message));
    } catch (nb::python_error& e) {
      e.discard_as_unraisable("smdebug log");
    }
  }

 private:
  nb::callable sink_;
};

}  // namespace smdebug
