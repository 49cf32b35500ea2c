#pragma once

// A storage as Python holds it, with the number of requests it sent.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "smd/storage/storage.h"

namespace smdebug {

// Requests by kind. Thread-safe.
class RequestCounter final {
 public:
  void add(std::string_view kind) {
    std::lock_guard lock(mutex_);
    ++counts_[std::string(kind)];
  }
  std::map<std::string, int64_t> counts() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;  // guarded by mutex_
};

struct PyStorage {
  std::shared_ptr<smd::storage::Storage> storage;
  std::shared_ptr<RequestCounter> counter;
};
}  // namespace smdebug
