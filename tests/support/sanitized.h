#pragma once

// Whether a test is built with a sanitizer that has a heap of its own, whose size says nothing.

namespace smd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasOwnHeap = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kHasOwnHeap = true;
#else
inline constexpr bool kHasOwnHeap = false;
#endif
#else
inline constexpr bool kHasOwnHeap = false;
#endif

}  // namespace smd
