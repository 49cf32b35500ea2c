#pragma once

// The name of the JSON type, for headers that only mention it. Include smd/base/json.h to use it.
// Programs that are built against the installed library need not have nlohmann's headers: without
// them the type stays incomplete, and so do the few functions that take or return it.

#if __has_include(<nlohmann/json_fwd.hpp>)
#include <nlohmann/json_fwd.hpp>

namespace smd {
using Json = nlohmann::ordered_json;
}  // namespace smd
#else
namespace smd {
class Json;
}  // namespace smd
#endif
