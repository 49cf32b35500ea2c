#pragma once

// The name of this machine, as files tell who wrote them. Any thread may call.

#include <string>

namespace smd {

// Never empty; "unknown" if the operating system does not tell.
std::string host_name();

}  // namespace smd
