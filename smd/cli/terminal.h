#pragma once

// Where the words of a command go, and what that place can show. Passed to everything that prints,
// so that tests bring streams of their own. One thread at a time.

#include <iosfwd>
#include <string>
#include <string_view>

namespace smd::cli {

enum class ColorChoice { automatic, always, never };

enum class Style { good, bad, faint, strong };

// Borrows the streams, which must outlive it.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int width = 80;      // columns; lines are cut only if out_is_terminal
  bool color = false;  // on out

  // The text in the style's colour, or as it is.
  std::string paint(Style style, std::string_view text) const;
  // A sentence for people on `err`, at once; whatever could steer a terminal is made harmless.
  void say(std::string_view sentence) const;
  // The columns that a line on `out` may take; 0: any number.
  int out_width() const { return out_is_terminal ? width : 0; }
};

// The process's standard streams, with the width that the operating system reports.
Terminal system_terminal();

// With `automatic` there is colour on terminals, unless NO_COLOR is set or TERM is "dumb".
bool wants_color(ColorChoice choice, bool is_terminal);

}  // namespace smd::cli
