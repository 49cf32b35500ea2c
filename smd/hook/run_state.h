#pragma once

// How far a run has got, told by its own files: for a job whose state beside the checkpoints was
// lost. Pure function but for what it reads.

#include <optional>

#include "smd/base/result.h"
#include "smd/hook/resume_state.h"
#include "smd/storage/storage.h"
#include "smd/types/run_layout.h"

namespace smd {

// The last recorded step, and the last recorded one of each mode among the most recent steps.
// nullopt: the run holds none. Files that cannot be understood are passed over.
Result<std::optional<ResumeState>> state_of_run(storage::Storage& storage, RunLayout layout);

}  // namespace smd
