#pragma once

// The metrics of a managed training job: one JSON object per line in <folder>/<pid>.json, which the
// platform reads while it grows. Lines appear whole, those of a step together. Writer thread only.

#include <sys/types.h>

#include <memory>
#include <string>

#include "smd/writer/output.h"

namespace smd {

struct MetricsFileOptions {
  std::string folder;  // made when there is something to write
  pid_t pid = 0;
};

// Takes what is_metric; other scalars pass by. The file is opened with the first of them, and an
// older one of the same name goes on. What cannot be written waits, up to a megabyte.
std::unique_ptr<Output> metrics_file(MetricsFileOptions options);

}  // namespace smd
