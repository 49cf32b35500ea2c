#pragma once

// The names of reductions as the writer wants them: with static lifetime. Thread-safe.

#include <string_view>

#include "smd/reduce/reduction.h"

namespace smd {

std::string_view stored_name(Reduction reduction);

}  // namespace smd
