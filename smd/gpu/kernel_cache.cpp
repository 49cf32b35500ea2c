#include "smd/gpu/kernel_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "smd/base/crc32c.h"

namespace smd::gpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "smdebug kernel 1\n";

// FNV-1a
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

// What a file begins with; the code follows.
std::string head_of(std::string_view key, ByteSpan code) {
  return fmt::format("{}{:016x} {} {:08x}\n", kMagic, hash_of(key), code.size(), crc32c(code));
}

}  // namespace

std::string KernelCache::path_of(std::string_view name, std::string_view key) const {
  return fmt::format("{}/{}-{:016x}.bin", folder_, name, hash_of(key));
}

std::optional<Bytes> KernelCache::find(std::string_view name, std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream file(path_of(name, key), std::ios::binary);
  std::string head, line;
  if (!std::getline(file, head) || !std::getline(file, line)) return std::nullopt;
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const ByteSpan code(reinterpret_cast<const std::byte*>(content.data()), content.size());
  if (code.empty() || head + "\n" + line + "\n" != head_of(key, code)) return std::nullopt;
  return Bytes(code.begin(), code.end());
}

void KernelCache::store(std::string_view name, std::string_view key, ByteSpan code) const {
  if (folder_.empty()) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  const std::string path = path_of(name, key);
  const std::string partial = fmt::format("{}.{}-{:x}", path, getpid(),
                                          std::hash<std::thread::id>()(std::this_thread::get_id()));
  {
    std::ofstream file(partial, std::ios::binary);
    const std::string head = head_of(key, code);
    file.write(head.data(), static_cast<std::streamsize>(head.size()));
    file.write(reinterpret_cast<const char*>(code.data()),
               static_cast<std::streamsize>(code.size()));
    file.close();
    if (file) fs::rename(partial, path, failed);
    if (file && !failed) return;
  }
  fs::remove(partial, failed);
}

}  // namespace smd::gpu
