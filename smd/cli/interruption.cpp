#include "smd/cli/interruption.h"

namespace smd::cli {
namespace {

// Signal handlers can reach nothing else.
volatile std::sig_atomic_t noted = 0;

extern "C" void note_signal(int) { noted = 1; }

}  // namespace

Interruption::Interruption() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESETHAND;
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
}

Interruption::~Interruption() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool Interruption::has_come() const { return noted != 0; }

}  // namespace smd::cli
