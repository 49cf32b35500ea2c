#include "smd/storage/journal_bytes.h"

#include <fmt/format.h>
#include <zstd.h>

#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>
#include <string_view>

#include "smd/base/crc32c.h"
#include "smd/base/protobuf_field.h"

namespace smd::storage {
namespace {

using protozero::pbf_builder;
using protozero::pbf_message;

constexpr std::string_view kHeadMagic = "SMDHEAD1";
constexpr std::string_view kListMagic = "SMDLIST1";
constexpr uint16_t kVersion = 1;

constexpr size_t kVersionAt = 8;
constexpr size_t kFeaturesAt = 10;
constexpr size_t kCrcAt = 12;
constexpr size_t kLengthAt = 16;
constexpr size_t kMessageBytesAt = 20;
constexpr size_t kHeaderBytes = 24;

enum class HeadField : protozero::pbf_tag_type { last = 1, snapshot = 2, entry = 3 };
enum class SnapshotField : protozero::pbf_tag_type {
  first = 1,
  last = 2,
  size_bytes = 3,
  chance = 4
};
enum class EntryField : protozero::pbf_tag_type { number = 1, id = 2, content = 3 };

Error corrupt(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("The object is damaged: {}.", what)};
}

Result<std::string> framed(std::string_view magic, const std::string& message) {
  if (message.size() > kMostJournalBytes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} bytes are too many for an object of the journal; {} are allowed.",
                             message.size(), kMostJournalBytes)};
  }
  std::string out(kHeaderBytes + ZSTD_compressBound(message.size()), '\0');
  constexpr int kLevel = 1;
  const size_t length = ZSTD_compress(out.data() + kHeaderBytes, out.size() - kHeaderBytes,
                                      message.data(), message.size(), kLevel);
  if (ZSTD_isError(length) != 0) return Error{ErrorCode::internal, ZSTD_getErrorName(length)};
  out.resize(kHeaderBytes + length);
  out.replace(0, magic.size(), magic);
  auto* const bytes = reinterpret_cast<std::byte*>(out.data());
  store_le(bytes + kVersionAt, kVersion);
  store_le(bytes + kFeaturesAt, uint16_t{0});
  store_le(bytes + kLengthAt, static_cast<uint32_t>(length));
  store_le(bytes + kMessageBytesAt, static_cast<uint32_t>(message.size()));
  store_le(bytes + kCrcAt, crc32c(as_bytes(out).subspan(kLengthAt)));
  return out;
}

Result<std::string> unframed(std::string_view magic, ByteSpan bytes) {
  const std::string_view text = as_text(bytes);
  const std::string_view start = text.substr(0, magic.size());
  if (start != magic.substr(0, start.size())) {
    return Error{ErrorCode::corrupt, "The object was not written by smdebug."};
  }
  const auto truncated = [&](uint64_t expected) {
    return Error{ErrorCode::truncated,
                 fmt::format("The object ends after {} of {} bytes.", bytes.size(), expected)};
  };
  if (bytes.size() < kHeaderBytes) return truncated(kHeaderBytes);
  const auto version = load_le<uint16_t>(bytes.data() + kVersionAt);
  const auto features = load_le<uint16_t>(bytes.data() + kFeaturesAt);
  if (version == 0) return corrupt("it has no version");
  if (version > kVersion || features != 0) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The run was written by a later release: its journal has version {} "
                             "and features {:#x}, and this one reads up to {}; update smdebug.",
                             version, features, kVersion)};
  }
  const uint64_t length = load_le<uint32_t>(bytes.data() + kLengthAt);
  const uint64_t message_bytes = load_le<uint32_t>(bytes.data() + kMessageBytesAt);
  if (bytes.size() < kHeaderBytes + length) return truncated(kHeaderBytes + length);
  if (bytes.size() > kHeaderBytes + length) return corrupt("it is longer than it says");
  const uint32_t crc = crc32c(bytes.subspan(kLengthAt));
  const auto expected = load_le<uint32_t>(bytes.data() + kCrcAt);
  if (crc != expected) {
    return corrupt(fmt::format("the checksum is {:#010x}, expected {:#010x}", crc, expected));
  }
  const ByteSpan compressed = bytes.subspan(kHeaderBytes);
  // The stated size is trusted only as far as the compressed bytes agree.
  if (message_bytes > kMostJournalBytes ||
      ZSTD_getFrameContentSize(compressed.data(), compressed.size()) != message_bytes) {
    return corrupt("the sizes of its message differ");
  }
  std::string message(message_bytes, '\0');
  const size_t size =
      ZSTD_decompress(message.data(), message.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(size) != 0) return corrupt(ZSTD_getErrorName(size));
  if (size != message.size()) return corrupt("its message is shorter than stated");
  return message;
}

void add_entry(pbf_builder<HeadField>& out, const JournalEntry& entry) {
  pbf_builder<EntryField> one(out, HeadField::entry);
  one.add_uint64(EntryField::number, entry.number);
  one.add_string(EntryField::id, entry.id);
  one.add_bytes(EntryField::content, entry.content);
}

JournalEntry read_entry(pbf_message<EntryField> message) {
  JournalEntry entry;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(EntryField::number, kVarint): entry.number = message.get_uint64(); break;
      case field(EntryField::id, kText): entry.id = message.get_string(); break;
      case field(EntryField::content, kText): entry.content = message.get_bytes(); break;
      default: message.skip();
    }
  }
  return entry;
}

JournalSnapshot read_snapshot(pbf_message<SnapshotField> message) {
  JournalSnapshot snapshot;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(SnapshotField::first, kVarint): snapshot.first = message.get_uint64(); break;
      case field(SnapshotField::last, kVarint): snapshot.last = message.get_uint64(); break;
      case field(SnapshotField::size_bytes, kVarint):
        snapshot.size_bytes = message.get_uint64();
        break;
      case field(SnapshotField::chance, kFixed32): snapshot.chance = message.get_fixed32(); break;
      default: message.skip();
    }
  }
  return snapshot;
}

JournalHead read_head(const std::string& text) {
  JournalHead head;
  pbf_message<HeadField> message(text);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(HeadField::last, kVarint): head.last = message.get_uint64(); break;
      case field(HeadField::snapshot, kText):
        head.snapshots.push_back(read_snapshot(message.get_message()));
        break;
      case field(HeadField::entry, kText):
        head.entries.push_back(read_entry(message.get_message()));
        break;
      default: message.skip();
    }
  }
  return head;
}

Result<JournalHead> parsed(std::string_view magic, ByteSpan bytes) {
  SMD_TRY(const std::string message, unframed(magic, bytes));
  try {
    return read_head(message);
  } catch (const std::exception& e) {  // protozero reports malformed input by exceptions
    return corrupt(e.what());
  }
}

Status check_numbers(const std::vector<JournalEntry>& entries) {
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].number != entries[0].number + i) {
      return corrupt(
          fmt::format("the entry {} follows {}", entries[i].number, entries[i - 1].number));
    }
  }
  return {};
}

}  // namespace

uint64_t size_of(const JournalEntry& entry) {
  constexpr uint64_t kOverhead = 24;
  return entry.id.size() + entry.content.size() + kOverhead;
}

Result<std::string> encode_head(const JournalHead& head) {
  std::string message;
  pbf_builder<HeadField> out(message);
  out.add_uint64(HeadField::last, head.last);
  for (const JournalSnapshot& snapshot : head.snapshots) {
    pbf_builder<SnapshotField> one(out, HeadField::snapshot);
    one.add_uint64(SnapshotField::first, snapshot.first);
    one.add_uint64(SnapshotField::last, snapshot.last);
    one.add_uint64(SnapshotField::size_bytes, snapshot.size_bytes);
    one.add_fixed32(SnapshotField::chance, snapshot.chance);
  }
  for (const JournalEntry& entry : head.entries) add_entry(out, entry);
  return framed(kHeadMagic, message);
}

Result<std::string> encode_entries(const std::vector<JournalEntry>& entries) {
  std::string message;
  pbf_builder<HeadField> out(message);
  for (const JournalEntry& entry : entries) add_entry(out, entry);
  return framed(kListMagic, message);
}

Result<JournalHead> parse_head(ByteSpan bytes) {
  SMD_TRY(JournalHead head, parsed(kHeadMagic, bytes));
  uint64_t last = 0;
  for (const JournalSnapshot& snapshot : head.snapshots) {
    if (snapshot.first != last + 1 || snapshot.last < snapshot.first) {
      return corrupt(fmt::format("a snapshot from {} to {} follows the entry {}", snapshot.first,
                                 snapshot.last, last));
    }
    last = snapshot.last;
  }
  SMD_RETURN_IF_ERROR(check_numbers(head.entries));
  if (!head.entries.empty()) {
    if (head.entries.front().number != last + 1) {
      return corrupt(fmt::format("the entry {} follows {}", head.entries.front().number, last));
    }
    last = head.entries.back().number;
  }
  if (head.last != last) {
    return corrupt(fmt::format("it ends with the entry {} instead of {}", last, head.last));
  }
  return head;
}

Result<std::vector<JournalEntry>> parse_entries(ByteSpan bytes) {
  SMD_TRY(JournalHead list, parsed(kListMagic, bytes));
  if (list.entries.empty()) return corrupt("it holds no entry");
  SMD_RETURN_IF_ERROR(check_numbers(list.entries));
  return std::move(list.entries);
}

}  // namespace smd::storage
