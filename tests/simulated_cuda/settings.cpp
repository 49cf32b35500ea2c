#include "tests/simulated_cuda/settings.h"

#include <cstdio>
#include <cstdlib>

namespace simulated_cuda {
namespace {

template <class T>
void read(const char* name, T& out) {
  const char* const text = std::getenv(name);
  if (text != nullptr) out = static_cast<T>(std::strtoul(text, nullptr, 10));
}

Settings of_environment() {
  Settings out;
  read("SIMULATED_CUDA_DEVICES", out.devices);
  read("SIMULATED_CUDA_DELAY_US", out.delay_us);
  read("SIMULATED_CUDA_SEED", out.seed);
  read("SIMULATED_CUDA_LOCKED_BYTES", out.locked_bytes);
  int device = 0;
  unsigned long count = 0;
  if (const char* const text = std::getenv("SIMULATED_CUDA_FAIL");
      text != nullptr && std::sscanf(text, "%d:%lu", &device, &count) == 2) {
    out.failure.emplace(device, count);
  }
  return out;
}

}  // namespace

const Settings& Settings::get() {
  static const Settings settings = of_environment();
  return settings;
}

}  // namespace simulated_cuda
