#pragma once

// Python's pattern language written in PCRE2's. Pure function.

#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd {

// A PCRE2 pattern (UTF, UCP) that finds what Python's `re` would find with `pattern`. Escapes,
// repeats and classes that only differ in spelling are respelled. `unsupported`: the pattern uses
// something that has no exact counterpart, or that Python does not know; the message names it.
// Other mistakes are left for PCRE2 to find.
Result<std::string> pcre_from_python(std::string_view pattern);

}  // namespace smd
