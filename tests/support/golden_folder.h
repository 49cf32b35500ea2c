#pragma once

// Where the runs lie that the original has written, for C++ tests.

#include <string>

namespace smd {

std::string golden_folder();

}  // namespace smd
