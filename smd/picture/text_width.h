#pragma once

// Text as a terminal shows it: how many columns it takes, how it is cut, and what of it is safe to
// print. Names of tensors and files come from strangers. Pure functions over UTF-8.

#include <string>
#include <string_view>

namespace smd {

// The text without anything that could steer a terminal: control characters and bytes that are not
// UTF-8 become \xNN.
std::string printable(std::string_view text);

// Columns that the text takes: two for East Asian wide characters and emoji, none for combining
// marks. The text must be printable.
int text_width(std::string_view text);

// The text if it fits, else its beginning and "…", `width` columns at most. width >= 1.
std::string cut_to_width(std::string_view text, int width);

}  // namespace smd
