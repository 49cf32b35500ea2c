#pragma once

// What a packed segment holds, read from its log as that grows; from the segment itself when the
// log is missing or damaged. Several logs may be read at the same time; each by one thread at a
// time.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_log.h"
#include "smd/storage/storage.h"
#include "smd/trial/staging.h"

namespace smd::internal {

class SegmentLog final {
 public:
  explicit SegmentLog(format::PackedFileName name) : name_(std::move(name)) {}

  // Reads what is new. An entry that is not there completely is left for the next time.
  // unsupported: written by a later release. Other errors say why the segment is read no further.
  Status read(storage::Storage& storage);
  // The same without the log: from the footer, or else from the records of the segment.
  Status read_segment(storage::Storage& storage);
  // The same from the bytes of a log, wherever they come from: all of it, or what continues what
  // was read before.
  Status read_whole(std::string_view log);
  Status read_more(std::string_view text);
  // Adds the steps that were read to the staging, and forgets them.
  void merge(Staging& staging, bool keep_checksums);

  // No step will follow.
  bool ended() const { return ended_; }
  // Bytes of the log that were understood.
  uint64_t size_bytes() const { return read_bytes_; }

  // --- for those who do not merge
  // The path of the segment, as the log says it.
  const std::string& segment() const { return segment_; }
  const std::vector<format::PackedStep>& steps() const { return steps_; }
  const std::string& name(uint32_t id) const { return names_[id]; }
  // How many numbers the block of a step holds, and in how many bytes.
  uint64_t numbers_of(const format::PackedStep& step) const;
  uint64_t number_bytes_of(const format::PackedStep& step) const;

 private:
  // The records of one tensor.
  using RawGroup = std::span<const format::PackedRaw>;
  static std::vector<RawGroup> groups_of(std::span<const format::PackedRaw> raws);
  Status check_group(const format::PackedStep& step, const RawGroup& group) const;

  struct Schema {
    std::vector<std::string> ops;
    std::vector<format::PackedValue> values;
    std::vector<uint32_t> offsets;
    uint64_t size_bytes = 0;
  };

  // Understands the entries from read_bytes_ on; `text` is what follows there.
  Status parse(ByteSpan text);
  Status take(const format::PackedEntry& entry);
  Status take_schema(const format::PackedSchema& schema);
  Status take_step(const format::PackedStep& step);
  uint32_t layout_of(const format::PackedStep& step, Staging& staging);
  // Gives new names their numbers in the order in which the writer met them.
  void number_tensors(const format::PackedStep& step, Staging& staging);
  // Tensor and slot of a name, which may be that of a reduction.
  Layout::Entry entry_of(uint32_t name, Staging& staging) const;
  // The same for names that are none: looked up once.
  uint32_t tensor_of(uint32_t name, Staging& staging);

  const format::PackedFileName name_;
  uint64_t read_bytes_ = 0;
  bool begun_ = false;  // the header was read
  bool ended_ = false;
  std::string segment_;
  std::vector<std::string> names_;
  std::vector<uint32_t> tensors_;  // their numbers in the staging, as far as they were looked up
  std::map<uint32_t, Schema> schemas_;
  std::vector<format::PackedStep> steps_;  // not merged yet
  // Layouts in the staging by the numbers that make them; most steps are like the one before.
  std::map<std::vector<uint64_t>, uint32_t> layouts_;
  std::vector<uint64_t> key_;
  std::vector<uint64_t> last_key_;
  uint32_t last_layout_ = 0;
};

}  // namespace smd::internal
