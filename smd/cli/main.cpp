// The program smdebug.

#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "smd/cli/program.h"
#include "smd/cli/python_handover.h"

namespace {

// Ends at once, whatever is being done; files appear whole or not at all, so no reader sees a torn
// one.
extern "C" void end_on_interrupt(int) {
  if (::isatty(STDERR_FILENO) == 1) {
    constexpr char kWipe[] = "\r\x1b[0m\x1b[K";  // the bar of a command that works
    (void)!::write(STDERR_FILENO, kWipe, sizeof kWipe - 1);
  }
  ::_exit(static_cast<int>(smd::cli::ExitCode::interrupted));
}

int run(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  smd::cli::Terminal terminal = smd::cli::system_terminal();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const smd::cli::ProgramOptions options{
      .hand_over = [](std::span<const std::string> words) -> smd::Result<smd::cli::ExitCode> {
        return smd::cli::hand_over_to_python(words);
      }};
  const auto code = smd::cli::run_program(arguments, terminal, options);
  std::cout << std::flush;
  if (!std::cout) {
    std::cerr << "smdebug: The output could not be written completely.\n";
    return static_cast<int>(smd::cli::ExitCode::usage);
  }
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, end_on_interrupt);
  // A reader that goes away ends the program without words, also if a parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // out of memory, or a bug
    std::cerr << "smdebug: " << e.what() << '\n';
    return static_cast<int>(smd::cli::ExitCode::usage);
  }
}
