#pragma once

// Tells which files of a storage are new, without listing it. Local directories have it; where a
// storage has none, its user lists again. changes() is for one thread at a time, wait() for all.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"

namespace smd::storage {

class Watch {
 public:
  virtual ~Watch() = default;

  // Paths of files that were published or changed since the last call, each at least once, in no
  // order. nullopt: something was missed, so list everything.
  virtual Result<std::optional<std::vector<std::string>>> changes() = 0;
  // True when changes() may have something, false at the deadline or after a signal.
  virtual bool wait(std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace smd::storage
