#include "smd/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/text_width.h"
#include "smd/cli/units.h"

namespace smd::cli {
namespace {

constexpr std::chrono::milliseconds kDelay{300};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

std::string progress_line(std::string_view what, uint64_t done_bytes, uint64_t total_bytes,
                          double elapsed_secs, int width) {
  const double part =
      total_bytes == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  const double rate = elapsed_secs > 0 ? static_cast<double>(done_bytes) / elapsed_secs : 0;
  std::string end = fmt::format(" {:3.0f}%", part * 100);
  if (rate >= 1) {
    end += fmt::format("  {}/s", human_bytes(static_cast<uint64_t>(std::min(rate, 1e18))));
    end +=
        fmt::format("  {} left", human_secs(static_cast<double>(total_bytes) * (1 - part) / rate));
  }
  constexpr int kMostCells = 40;
  constexpr int kLeastCells = 5;
  const int cells = std::min(kMostCells, width - text_width(what) - text_width(end) - 3);
  if (cells < kLeastCells) return cut_to_width(fmt::format("{}{}", what, end), std::max(1, width));
  const auto full = static_cast<size_t>(part * cells);
  return fmt::format("{} [{}{}]{}", what, std::string(full, '#'),
                     std::string(static_cast<size_t>(cells) - full, ' '), end);
}

Progress::Progress(Terminal& terminal, std::shared_ptr<const Clock> clock, std::string what)
    : terminal_(terminal),
      clock_(std::move(clock)),
      what_(std::move(what)),
      start_(clock_->now()),
      drawn_(start_) {}

Progress::~Progress() {
  if (visible_) terminal_.err << kWipe << std::flush;
}

void Progress::update(uint64_t done_bytes, uint64_t total_bytes) {
  if (!terminal_.err_is_terminal) return;
  const auto now = clock_->now();
  if (now - start_ < kDelay || (visible_ && now - drawn_ < kInterval)) return;
  drawn_ = now;
  visible_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // The last column is left free, since some terminals break the line there.
  terminal_.err << kWipe
                << progress_line(what_, done_bytes, total_bytes, elapsed, terminal_.width - 1)
                << std::flush;
}

}  // namespace smd::cli
