#pragma once

// A bar on stderr while a command works, if somebody is there to see it: only when stderr is a
// terminal. Never touches stdout. One thread at a time.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "smd/base/clock.h"
#include "smd/cli/terminal.h"

namespace smd::cli {

// What is counted: only of bytes a rate is shown.
enum class ProgressUnit { bytes, steps };

// One line of at most `width` columns, such as "verify [#####     ]  50%  1.2 GiB/s  3 s left".
struct ProgressState {
  uint64_t done = 0;
  uint64_t total = 0;
  double elapsed_secs = 0;
  ProgressUnit unit = ProgressUnit::bytes;
};
std::string progress_line(std::string_view what, const ProgressState& state, int width);

class Progress final {
 public:
  // Borrows the terminal.
  Progress(Terminal& terminal, std::shared_ptr<const Clock> clock, std::string what,
           ProgressUnit unit = ProgressUnit::bytes);
  // Wipes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws at most ten times a second, and nothing in the first moments: quick work needs no bar.
  void update(uint64_t done, uint64_t total);

 private:
  Terminal& terminal_;
  const std::shared_ptr<const Clock> clock_;
  const std::string what_;
  const ProgressUnit unit_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  bool visible_ = false;
};

}  // namespace smd::cli
