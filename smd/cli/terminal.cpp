#include "smd/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

// What an environment variable says; "" if it is not set. Commands start no thread before.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : value;
}

int system_width() {
  constexpr int kUsual = 80;
  constexpr int kLeast = 20;
  winsize size{};
  int width = 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  if (width == 0) width = std::atoi(std::string(variable("COLUMNS")).c_str());
  if (width <= 0) return kUsual;
  return width < kLeast ? kLeast : width;
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::good: return "32";
    case Style::bad: return "31";
    case Style::faint: return "2";
    case Style::strong: return "1";
  }
  return "0";
}

}  // namespace

std::string Terminal::paint(Style style, std::string_view text) const {
  if (!color) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

void Terminal::say(std::string_view sentence) const {
  err << "smdebug: " << printable(sentence) << '\n' << std::flush;
}

Terminal system_terminal() {
  return {.out = std::cout,
          .err = std::cerr,
          .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
          .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
          .width = system_width()};
}

bool wants_color(ColorChoice choice, bool is_terminal) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  return is_terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

}  // namespace smd::cli
