#pragma once

// What people type for the place of a run: a path or a URI. Pure functions but for HOME.

#include <string>
#include <string_view>

namespace smd::storage {

// Whether the location has a scheme; everything else is a path of this machine.
bool is_uri(std::string_view location);

// The path with the home directory in place of a leading `~`, if HOME says which that is.
std::string with_home(std::string path);

}  // namespace smd::storage
