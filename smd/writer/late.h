#pragma once

// What is still on its way from a device when its step is handed over: the writer thread waits.

#include <optional>
#include <span>
#include <string_view>

#include "smd/base/result.h"
#include "smd/writer/output.h"
#include "smd/writer/sink.h"

namespace smd {

// What was found of one tensor. Views live as long as the list that it is of.
struct LateFound {
  std::string_view tensor;
  std::span<const StoredReduction> values;
  // What is shown of it beside the run.
  std::optional<SavedScalar> scalar;
  std::optional<SavedHistogram> histogram;
};

// The numbers of tensors that come together.
class LateNumbers {
 public:
  virtual ~LateNumbers() = default;

  // Waits for them; called by the writer thread. They live as long as this object. An error costs
  // the step.
  virtual Result<std::span<const LateFound>> wait() = 0;
};

// Memory that is being filled.
class LateMemory {
 public:
  virtual ~LateMemory() = default;

  // Whether wait() returns at once.
  virtual bool is_ready() const = 0;
  // Waits until it is. False: it is not to be saved after all. An error costs the step.
  virtual Result<bool> wait() = 0;
};

}  // namespace smd
