#pragma once

// What lists say of a run. Pure functions over what is known of it.

#include "smd/base/json.h"
#include "smd/server/served_run.h"

namespace smd::server {

// The object that openapi.yaml calls RunSummary.
Json run_summary(const ServedRun& run, const RunFacts& facts);
// Changes with the summary.
std::string summary_version(const ServedRun& run, const RunFacts& facts);

}  // namespace smd::server
