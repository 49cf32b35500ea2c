#pragma once

// The objects of a journal as bytes: HEAD, and lists of entries (one entry that was committed, or a
// snapshot of many). Each is a header of 24 bytes and a compressed message:
//
//   0  magic, 8 bytes: SMDHEAD1 or SMDLIST1
//   8  version u16, 1
//  10  features u16: bits that a reader must understand, 0
//  12  CRC-32C of everything that follows, u32
//  16  length of the compressed message, u32
//  20  length of the message, u32
//  24  the message, compressed with zstd
//
// All integers are little endian. Pure functions over bytes; see docs/format/packed.md.

#include <cstdint>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"

namespace smd::storage {

// Something that was committed; the journal does not know what it means.
struct JournalEntry {
  uint64_t number = 0;  // from 1 on, without gaps
  std::string id;       // tells whether something was committed already
  std::string content;

  bool operator==(const JournalEntry&) const = default;
};

// A list of the entries from `first` to `last`, in an object of its own.
struct JournalSnapshot {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t size_bytes = 0;  // of its entries, before compression
  uint32_t chance = 0;      // part of its name, so that nobody else writes or removes it

  bool operator==(const JournalSnapshot&) const = default;
};

// Snapshots and entries follow each other without gaps, from 1 to `last`.
struct JournalHead {
  uint64_t last = 0;  // 0: nothing was committed yet
  std::vector<JournalSnapshot> snapshots;
  std::vector<JournalEntry> entries;  // those after the last snapshot

  bool operator==(const JournalHead&) const = default;
};

// A message is not larger than this.
inline constexpr uint64_t kMostJournalBytes = uint64_t{160} << 20;

// What an entry takes in a message, about.
uint64_t size_of(const JournalEntry& entry);

Result<std::string> encode_head(const JournalHead& head);
// Entries with numbers that follow each other.
Result<std::string> encode_entries(const std::vector<JournalEntry>& entries);

// truncated: a part is missing. corrupt: something else, or damaged. unsupported: a later version,
// or features that must be understood and are not.
Result<JournalHead> parse_head(ByteSpan bytes);
Result<std::vector<JournalEntry>> parse_entries(ByteSpan bytes);

}  // namespace smd::storage
