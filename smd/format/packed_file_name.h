#pragma once

// Names of the files of a run in the packed layout, relative to the run's root. A writer is one
// process's life as one worker: "<worker>.<incarnation>", and the later of two incarnations has the
// greater text. Pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace smd::format {

inline constexpr std::string_view kPackedFolder = "v2";
inline constexpr std::string_view kSegmentFolder = "v2/seg";
inline constexpr std::string_view kLogFolder = "v2/log";
// Only while they wait to be sent to an object store.
inline constexpr std::string_view kNoteFolder = "v2/note";
// Says that index/ and events/ were exported from the segments and are no run of their own.
inline constexpr std::string_view kExportMark = "v2/export.json";

// Microseconds since 1970 as 14 hexadecimal digits, then 8 of chance.
std::string incarnation_text(uint64_t micros, uint32_t chance);
// The microseconds; nullopt: not such a text.
std::optional<uint64_t> incarnation_micros(std::string_view incarnation);

// `worker` as it stands in file names (worker_to_file_name).
std::string writer_name(std::string_view worker, std::string_view incarnation);

// "v2/seg/5f/<writer>/00000000": 256 folders, as object stores are fastest with many prefixes.
std::string segment_file_name(std::string_view writer, uint32_t sequence);
// "v2/log/<writer>/00000000".
std::string log_file_name(std::string_view writer, uint32_t sequence);

// "v2/note/<writer>/00000000".
std::string note_file_name(std::string_view writer, uint32_t sequence);

struct PackedFileName {
  std::string writer;
  std::string worker;  // with device strings restored
  uint64_t micros = 0;
  uint32_t sequence = 0;

  bool operator==(const PackedFileName&) const = default;
};

// Of a segment or a log; nullopt: neither.
std::optional<PackedFileName> parse_packed_file_name(std::string_view path);

}  // namespace smd::format
