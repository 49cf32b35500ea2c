#pragma once

// Which memory of the host is memory of which device, and which is page-locked. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace simulated_cuda {

class Memory final {
 public:
  // Page-locked memory of the host, which all devices reach.
  static constexpr int kHost = -1;

  static Memory& all();

  // Never given back, so that who comes too late finds what free() left there. nullptr: no more
  // memory can be locked.
  void* allocate(size_t bytes, int device);
  // Memory of somebody else, who may have had other memory at its place before.
  void add(void* memory, size_t bytes, int device);
  // Overwrites it. False: there is no such memory of this device.
  bool free(void* memory, int device);

  bool is_reached(uint64_t address, size_t bytes, int device) const;
  bool is_locked(const void* memory, size_t bytes) const;
  // The device that has it; kHost: none, or it was freed.
  int device_of(uint64_t address) const;

 private:
  static constexpr int kNobody = -2;  // was freed

  struct Region {
    size_t bytes = 0;
    int device = kNobody;
  };
  const Region* region_of(uint64_t address, size_t bytes) const;

  mutable std::mutex mutex_;  // guards what is below
  std::map<uint64_t, Region> regions_;
  size_t locked_bytes_ = 0;
};

}  // namespace simulated_cuda
