#pragma once

// Diagnoses as one HTML page that needs nothing else: no script, no other files, light or dark as
// its reader likes it. Pure function.

#include <span>
#include <string>

#include "smd/cli/diagnosed_run.h"

namespace smd::cli {

std::string html_page(std::span<const DiagnosedRun> runs);

}  // namespace smd::cli
