#pragma once

// Numbers as people read them. Pure functions.

#include <cstdint>
#include <string>
#include <string_view>

namespace smd::cli {

// "0 B", "999 B", "1.2 KiB", "34 MiB".
std::string human_bytes(uint64_t bytes);

// "0.3 s", "42 s", "2 min 5 s", "3 h 20 min".
std::string human_secs(double secs);

// "3", "0.25", "1.23457e-05", "NaN", "-inf".
std::string number_text(double value);

// "2026-01-31 23:59:59 UTC".
std::string utc_time(double unix_secs);

// "1 step", "2 steps".
std::string counted(uint64_t count, std::string_view noun);

}  // namespace smd::cli
