#pragma once

// Compiled code, and the kernels of smd/gpu/survey_kernel.h, which the host runs. Immutable,
// thread-safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tests/simulated_cuda/code.h"

namespace simulated_cuda {

class Device;
struct Element;  // the kernels for one element type
struct Kernel;   // which of them it is

// What the compiler makes of a program for elements of this type, which survey_kernel.h names;
// empty: it names none such. Ends with a zero.
std::string code_for(std::string_view element);

class Module final {
 public:
  // nullptr: it was not made by code_for().
  static const Element* read(const char* code);

  Module(Device& device, const Element& element) : device_(device), element_(element) {}
  Device& device() const { return device_; }
  const Element& element() const { return element_; }

 private:
  Device& device_;
  const Element& element_;
};

class Function final {
 public:
  // nullptr: there is no such kernel.
  static const Kernel* find(std::string_view name);

  Function(const Module& module, const Kernel& kernel) : module_(module), kernel_(kernel) {}
  Device& device() const { return module_.device(); }
  // What a launch does, with the argument as it is now.
  std::function<Code()> launch(uint32_t blocks, const void* argument) const;

 private:
  const Module& module_;
  const Kernel& kernel_;
};

}  // namespace simulated_cuda
