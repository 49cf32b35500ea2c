#include "smd/format/packed_file_name.h"

#include <fmt/format.h>

#include <charconv>

#include "smd/base/crc32c.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"

namespace smd::format {
namespace {

constexpr size_t kMicrosDigits = 14;
constexpr size_t kChanceDigits = 8;
constexpr size_t kSequenceDigits = 8;

template <typename T>
std::optional<T> number(std::string_view text, int base) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Cuts off what stands after the last `mark`.
std::optional<std::string_view> cut_last(std::string_view& text, char mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view last = text.substr(at + 1);
  text = text.substr(0, at);
  return last;
}

}  // namespace

std::string incarnation_text(uint64_t micros, uint32_t chance) {
  return fmt::format("{:014x}{:08x}", micros, chance);
}

std::optional<uint64_t> incarnation_micros(std::string_view incarnation) {
  if (incarnation.size() != kMicrosDigits + kChanceDigits) return std::nullopt;
  if (!number<uint32_t>(incarnation.substr(kMicrosDigits), 16)) return std::nullopt;
  return number<uint64_t>(incarnation.substr(0, kMicrosDigits), 16);
}

std::string writer_name(std::string_view worker, std::string_view incarnation) {
  return fmt::format("{}.{}", worker, incarnation);
}

std::string segment_file_name(std::string_view writer, uint32_t sequence) {
  return fmt::format("{}/{:02x}/{}/{:08}", kSegmentFolder, crc32c(as_bytes(writer)) & 0xFFu, writer,
                     sequence);
}

std::string log_file_name(std::string_view writer, uint32_t sequence) {
  return fmt::format("{}/{}/{:08}", kLogFolder, writer, sequence);
}

std::string note_file_name(std::string_view writer, uint32_t sequence) {
  return fmt::format("{}/{}/{:08}", kNoteFolder, writer, sequence);
}

std::optional<PackedFileName> parse_packed_file_name(std::string_view path) {
  std::string_view rest = path;
  const auto sequence_text = cut_last(rest, '/');
  if (!sequence_text || sequence_text->size() != kSequenceDigits) return std::nullopt;
  const auto sequence = number<uint32_t>(*sequence_text, 10);
  const auto writer = cut_last(rest, '/');
  if (!sequence || !writer) return std::nullopt;
  std::string_view worker = *writer;
  const auto incarnation = cut_last(worker, '.');
  if (!incarnation || worker.empty() || !is_utf8(worker)) return std::nullopt;
  const auto micros = incarnation_micros(*incarnation);
  if (!micros) return std::nullopt;
  PackedFileName name{.writer = std::string(*writer),
                      .worker = worker_from_file_name(worker),
                      .micros = *micros,
                      .sequence = *sequence};
  if (path != log_file_name(name.writer, name.sequence) &&
      path != segment_file_name(name.writer, name.sequence)) {
    return std::nullopt;
  }
  return name;
}

}  // namespace smd::format
