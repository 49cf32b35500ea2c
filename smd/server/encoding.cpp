#include "smd/server/encoding.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace smd::server {

std::string gzip(std::string_view text) {
  constexpr int kLevel = 3;
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t used = 0;
  int result = Z_OK;
  // zlib counts in 32 bits.
  constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max() / 2;
  while (result == Z_OK) {
    const size_t piece = std::min(text.size(), kMostAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(piece);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - used, kMostAtOnce));
    const uInt room = stream.avail_out;
    result = deflate(&stream, piece == text.size() ? Z_FINISH : Z_NO_FLUSH);
    used += room - stream.avail_out;
    text.remove_prefix(piece - stream.avail_in);
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return {};
  out.resize(used);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace smd::server
