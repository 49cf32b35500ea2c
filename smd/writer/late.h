#pragma once

// What is still on its way from a device when its step is handed over: the writer thread waits.

#include <optional>
#include <span>

#include "smd/base/result.h"
#include "smd/writer/output.h"
#include "smd/writer/sink.h"

namespace smd {

// Reductions of a tensor, and what is shown of it beside the run.
class LateReductions {
 public:
  virtual ~LateReductions() = default;

  // Waits for them; called by the writer thread. The values live as long as this object. An error
  // costs the step.
  virtual Result<std::span<const StoredReduction>> wait() = 0;
  // After wait(); nullopt: none is wanted, or there is none. Lives as long as this object.
  virtual std::optional<SavedHistogram> histogram() { return std::nullopt; }
};

// Memory that is being filled.
class LateMemory {
 public:
  virtual ~LateMemory() = default;

  // Waits until it is. An error costs the step.
  virtual Status wait() = 0;
};

}  // namespace smd
