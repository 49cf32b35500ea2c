#pragma once

// What is committed of a packed run in an object store: a segment with its log, or what readers
// need beside the steps, so that they need no other request to open a run. One protobuf message.
// Pure functions over bytes; see docs/format/packed.md.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/types/step.h"

namespace smd::format {

struct PackedManifest {
  struct File {
    std::string path;
    std::string content;
    bool operator==(const File&) const = default;
  };

  std::string writer;   // <worker>.<incarnation>; empty: a tool
  std::string segment;  // path; empty: none
  uint64_t segment_bytes = 0;
  std::string log;  // of the segment, with its end, as the footer holds it
  // Every step up to this one that the writer has saved is in this segment or was committed before.
  Step watermark = -1;
  std::vector<File> files;         // that have been written beside the steps
  std::optional<double> end_secs;  // the job ended at this Unix time

  bool operator==(const PackedManifest&) const = default;
};

std::string encode_manifest(const PackedManifest& manifest);
// corrupt: not such a message. unsupported: a later version, or features that are not known.
Result<PackedManifest> parse_manifest(ByteSpan bytes);

}  // namespace smd::format
