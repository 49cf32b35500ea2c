#pragma once

// The tensor's name from the first bytes of an event, so that checking names does not read the
// elements, which may be gigabytes. Pure function.

#include <optional>
#include <string>

#include "smd/base/bytes.h"

namespace smd::format {

// `start` is the beginning of a record's payload. nullopt: the name is not within these bytes, or
// the event is built in another way than the usual writers do; parse_event says more.
std::optional<std::string> peek_name(ByteSpan start);

}  // namespace smd::format
