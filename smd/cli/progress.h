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

// One line of at most `width` columns, such as "verify [#####     ]  50%  1.2 GiB/s  3 s left".
std::string progress_line(std::string_view what, uint64_t done_bytes, uint64_t total_bytes,
                          double elapsed_secs, int width);

class Progress final {
 public:
  // Borrows the terminal.
  Progress(Terminal& terminal, std::shared_ptr<const Clock> clock, std::string what);
  // Wipes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws at most ten times a second, and nothing in the first moments: quick work needs no bar.
  void update(uint64_t done_bytes, uint64_t total_bytes);

 private:
  Terminal& terminal_;
  const std::shared_ptr<const Clock> clock_;
  const std::string what_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  bool visible_ = false;
};

}  // namespace smd::cli
