#pragma once

// How bodies travel: compressed over HTTP, as text inside of a report. Pure functions.

#include <string>
#include <string_view>

namespace smd::server {

// A gzip member; empty: there is no memory for it. Fast rather than small.
std::string gzip(std::string_view text);
std::string base64(std::string_view bytes);

}  // namespace smd::server
