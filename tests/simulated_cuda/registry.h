#pragma once

// The objects behind the handles of one kind. They are never destroyed, as threads may still use
// them when the program ends. Thread-safe.

#include <mutex>
#include <set>

namespace simulated_cuda {

template <class T>
class Registry final {
 public:
  static Registry& all() {
    static auto& registry = *new Registry;
    return registry;
  }

  // Takes it over; its address is the handle.
  T* add(T* object) {
    const std::lock_guard lock(mutex_);
    objects_.insert(object);
    return object;
  }
  // nullptr: no object of this kind has this handle.
  T* find(void* handle) {
    const std::lock_guard lock(mutex_);
    return objects_.contains(handle) ? static_cast<T*>(handle) : nullptr;
  }

 private:
  std::mutex mutex_;  // guards what is below
  std::set<void*> objects_;
};

}  // namespace simulated_cuda
