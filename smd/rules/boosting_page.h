#pragma once

// The page that shows a report of boosted trees: one HTML text with its charts inside, which needs
// nothing from elsewhere. Pure function.

#include <string>

#include "smd/base/json.h"

namespace smd::rules {

// `report`: BoostingReport::to_json(), with "run" and "step" added.
std::string boosting_page(const Json& report);

}  // namespace smd::rules
