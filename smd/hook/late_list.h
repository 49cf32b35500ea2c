#pragma once

// Tensors in the memory of a device that is still reading them when the hook is told of them.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "smd/base/result.h"
#include "smd/reduce/nonfinite.h"
#include "smd/reduce/reduce.h"

namespace smd {

struct LateResults {
  ReductionResult reductions;
  std::optional<NonFinite> nonfinite;  // nullopt: only the reductions tell
  int64_t count = 0;                   // of elements
};

// A list of tensors that are read together. Asked by the training thread and by the writer thread.
class LateList {
 public:
  virtual ~LateList() = default;

  // Whether wait() returns at once.
  virtual bool is_ready() const = 0;
  // False: none of them is to be saved after all. Error: the device has failed.
  virtual Result<bool> wait() = 0;
  // What is requested of one of them, after wait().
  virtual Status find(size_t index, const ReductionRequest& request, LateResults& out) = 0;
  // What is held until the results have come.
  virtual size_t size_bytes() const = 0;
};

}  // namespace smd
