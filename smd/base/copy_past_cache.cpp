#include "smd/base/copy_past_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace smd {

#ifdef __SSE2__

void copy_past_cache(std::span<std::byte> to, const std::byte* from) {
  constexpr size_t kVector = sizeof(__m128i);
  constexpr size_t kLine = 64;
  std::byte* out = to.data();
  size_t left = to.size();
  // Such stores must be aligned; loads need not be.
  const size_t gap = (kLine - reinterpret_cast<uintptr_t>(out) % kLine) % kLine;
  const size_t head = std::min(left, gap);
  if (head > 0) std::memcpy(out, from, head);
  out += head;
  from += head;
  left -= head;
  for (; left >= kLine; left -= kLine, out += kLine, from += kLine) {
    const auto load = [&](size_t i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * kVector));
    };
    const __m128i a = load(0), b = load(1), c = load(2), d = load(3);
    auto* line = reinterpret_cast<__m128i*>(out);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  _mm_sfence();  // before another thread is told of it
  if (left > 0) std::memcpy(out, from, left);
}

#else

void copy_past_cache(std::span<std::byte> to, const std::byte* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

#endif

}  // namespace smd
