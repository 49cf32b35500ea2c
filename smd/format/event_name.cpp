#include "smd/format/event_name.h"

#include <cstdint>

#include "smd/format/internal/event_fields.h"

namespace smd::format {
namespace {

using protozero::pbf_wire_type;

// protozero wants whole messages, and here the outer ones are cut off.
class Cursor final {
 public:
  explicit Cursor(ByteSpan bytes) : bytes_(bytes) {}

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return std::nullopt;
      const auto byte = static_cast<uint64_t>(bytes_.front());
      bytes_ = bytes_.subspan(1);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  std::optional<ByteSpan> take(uint64_t count) {
    if (count > bytes_.size()) return std::nullopt;
    const ByteSpan out = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return out;
  }

  // Skips number fields up to the length-delimited field `number` and gives its length. Any other
  // length-delimited field is unusual here.
  std::optional<uint64_t> enter(uint64_t number) {
    for (;;) {
      const auto key = varint();
      if (!key) return std::nullopt;
      switch (static_cast<pbf_wire_type>(*key & 7)) {
        case pbf_wire_type::varint:
          if (!varint()) return std::nullopt;
          break;
        case pbf_wire_type::fixed64:
          if (!take(8)) return std::nullopt;
          break;
        case pbf_wire_type::fixed32:
          if (!take(4)) return std::nullopt;
          break;
        case pbf_wire_type::length_delimited:
          if (*key >> 3 != number) return std::nullopt;
          return varint();
        default: return std::nullopt;
      }
    }
  }

 private:
  ByteSpan bytes_;
};

}  // namespace

std::optional<std::string> peek_name(ByteSpan start) {
  Cursor cursor(start);
  if (!cursor.enter(static_cast<uint64_t>(internal::EventField::summary))) return std::nullopt;
  if (!cursor.enter(static_cast<uint64_t>(internal::SummaryField::value))) return std::nullopt;
  const auto length = cursor.enter(static_cast<uint64_t>(internal::ValueField::tag));
  if (!length) return std::nullopt;
  const auto name = cursor.take(*length);
  if (!name) return std::nullopt;
  return std::string(as_text(*name));
}

}  // namespace smd::format
