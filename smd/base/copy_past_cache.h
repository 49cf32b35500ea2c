#pragma once

// Copies memory that nobody reads soon. Pure function.

#include <cstddef>
#include <span>

namespace smd {

// As memcpy, but the copy does not come to lie in the cache: others keep their place there, and
// memory is not read before it is overwritten. Worth it for large pieces alone.
void copy_past_cache(std::span<std::byte> to, const std::byte* from);

}  // namespace smd
