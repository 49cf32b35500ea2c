#pragma once

// Text inside of XML, HTML and SVG. Names of tensors and files come from strangers. Pure function.

#include <string>
#include <string_view>

namespace smd {

// As text or as the value of an attribute in quotes. What no XML document may hold, such as control
// characters and bytes that are not UTF-8, is replaced as for a terminal.
std::string escaped(std::string_view text);

}  // namespace smd
