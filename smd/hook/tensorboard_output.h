#pragma once

// Shows a run in TensorBoard while it is recorded: scalars, histograms and the collections.
// Writer thread only.

#include <memory>

#include "smd/summary/summary_files.h"
#include "smd/writer/output.h"

namespace smd {

std::unique_ptr<Output> tensorboard_output(SummaryFilesOptions options);

}  // namespace smd
