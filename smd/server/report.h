#pragma once

// A page that needs no server: the answers to what it asks lie inside of it, as
// docs/reference/http.md describes.

#include <string>

#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/server/site.h"

namespace smd::server {

// Answers of a site that was opened for a report, by address. Judges its runs.
// Errors tell of runs that cannot be read.
Result<Json> report_answers(Site& site);

// The whole file.
Result<std::string> report_page(Site& site);

}  // namespace smd::server
