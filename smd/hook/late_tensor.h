#pragma once

// A tensor in the memory of a device that is still computing its statistics when the hook is told
// of it.

#include <cstddef>

#include "smd/base/result.h"
#include "smd/reduce/nonfinite.h"
#include "smd/reduce/reduce.h"

namespace smd {

struct LateResults {
  // Of all that Hook::wanted() named; the histogram too, if one is to be shown.
  ReductionResult reductions;
  NonFinite nonfinite;
};

// Asked by the training thread and by the writer thread.
class LateTensor {
 public:
  virtual ~LateTensor() = default;

  // Whether somebody has called results(), and it returned.
  virtual bool has_results() const = 0;
  // Whether results() need not wait.
  virtual bool is_ready() const = 0;
  // Waits. Lives as long as this object. Error: the device has failed.
  virtual Result<const LateResults*> results() = 0;
  // What is held until the results have come.
  virtual size_t size_bytes() const = 0;
};

}  // namespace smd
