#pragma once

// What the environment says of the simulation, see simulated_cuda.h. Immutable, thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace simulated_cuda {

struct Settings {
  int devices = 2;
  unsigned delay_us = 0;
  unsigned seed = 1;
  size_t locked_bytes = SIZE_MAX;
  std::optional<std::pair<int, unsigned long>> failure;  // of a device, after so many operations

  // Read at the first call.
  static const Settings& get();
};

}  // namespace simulated_cuda
