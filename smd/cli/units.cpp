#include "smd/cli/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>

namespace smd::cli {

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, kUnits[unit]);
}

std::string human_secs(double secs) {
  if (!std::isfinite(secs) || secs < 0) return "?";
  if (secs < 9.95) return fmt::format("{:.1f} s", secs);
  constexpr double kMost = 1e15;  // a number that still fits an integer
  const auto whole = static_cast<int64_t>(std::llround(std::min(secs, kMost)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  constexpr double kMostWhole = 1e10;
  if (std::abs(value) < kMostWhole && std::trunc(value) == value) {
    return fmt::format("{:.0f}", value);
  }
  return fmt::format("{:.6g}", value);
}

std::string utc_time(double unix_secs) {
  constexpr double kLatest = 253402300799;  // the last second of the year 9999
  if (!(unix_secs >= 0 && unix_secs <= kLatest)) return "?";
  const auto secs = static_cast<std::time_t>(unix_secs);
  std::tm parts{};
  ::gmtime_r(&secs, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace smd::cli
