#include "smd/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/units.h"
#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr std::chrono::milliseconds kDelay{300};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

std::string progress_line(std::string_view what, const ProgressState& state, int width) {
  const auto done = static_cast<double>(state.done);
  const auto total = static_cast<double>(state.total);
  const bool bytes = state.unit == ProgressUnit::bytes;
  const double part = state.total == 0 ? 1.0 : std::min(1.0, done / total);
  const double rate = state.elapsed_secs > 0 ? done / state.elapsed_secs : 0;
  std::string end = fmt::format(" {:3.0f}%", part * 100);
  if (bytes && rate >= 1) {
    end += fmt::format("  {}/s", human_bytes(static_cast<uint64_t>(std::min(rate, 1e18))));
  }
  if (rate >= (bytes ? 1 : 1e-6)) {
    end += fmt::format("  {} left", human_secs(total * (1 - part) / rate));
  }
  constexpr int kMostCells = 40;
  constexpr int kLeastCells = 5;
  const int cells = std::min(kMostCells, width - text_width(what) - text_width(end) - 3);
  if (cells < kLeastCells) return cut_to_width(fmt::format("{}{}", what, end), std::max(1, width));
  const auto full = static_cast<size_t>(part * cells);
  return fmt::format("{} [{}{}]{}", what, std::string(full, '#'),
                     std::string(static_cast<size_t>(cells) - full, ' '), end);
}

Progress::Progress(Terminal& terminal, std::shared_ptr<const Clock> clock, std::string what,
                   ProgressUnit unit)
    : terminal_(terminal),
      clock_(std::move(clock)),
      what_(std::move(what)),
      unit_(unit),
      start_(clock_->now()),
      drawn_(start_) {}

Progress::~Progress() {
  if (visible_) terminal_.err << kWipe << std::flush;
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!terminal_.err_is_terminal) return;
  const auto now = clock_->now();
  if (now - start_ < kDelay || (visible_ && now - drawn_ < kInterval)) return;
  drawn_ = now;
  visible_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // The last column is left free, since some terminals break the line there.
  terminal_.err << kWipe << progress_line(what_, {done, total, elapsed, unit_}, terminal_.width - 1)
                << std::flush;
}

}  // namespace smd::cli
