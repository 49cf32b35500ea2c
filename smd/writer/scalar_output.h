#pragma once

// Something beside the run that wants its single numbers, such as the job's metrics file. Called by
// the writer thread only, step by step, whether or not the run itself could be written. Views are
// valid during the call. A failure costs numbers of this output and nothing else.

#include <string_view>

#include "smd/base/result.h"
#include "smd/types/step.h"

namespace smd {

struct SavedScalar {
  std::string_view name;  // of the tensor, with its prefix
  double value = 0;
  double wall_secs = 0;    // Unix time
  bool is_metric = false;  // meant for the platform that runs the job
};

class ScalarOutput {
 public:
  virtual ~ScalarOutput() = default;

  virtual Status scalar(const StepInfo& step, const SavedScalar& scalar) = 0;
  // The step is over: what it had is to be readable now.
  virtual Status end_step() = 0;
  virtual Status close() = 0;
};

}  // namespace smd
