#pragma once

// Ctrl-C for commands that have something to finish. While it lives, the first SIGINT or SIGTERM is
// only noted, and a second one ends the process. One at a time in a process.

#include <csignal>

namespace smd::cli {

class Interruption final {
 public:
  Interruption();
  // What was there before is there again.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool has_come() const;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

}  // namespace smd::cli
