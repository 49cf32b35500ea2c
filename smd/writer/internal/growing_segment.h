#pragma once

// A segment of the packed layout and its log while they are written. A step's bytes go to the
// segment as they come, through a buffer, and the log tells of the step once it is whole.
// One thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/types/durability.h"

namespace smd::internal {

class GrowingSegment final {
 public:
  struct Name {
    std::string_view writer;
    uint32_t number = 0;  // among the segments of the writer
  };

  static Result<GrowingSegment> open(storage::Storage& storage, const Name& name,
                                     Durability durable);

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return segment_->size(); }
  uint64_t log_bytes() const { return log_text_.size(); }
  bool has_steps() const { return !log_text_.empty(); }

  // Before the first byte of a step.
  void begin_step();
  bool in_step() const { return in_step_; }
  // Where the step begins.
  uint64_t base() const { return base_; }
  // Where its next byte goes.
  uint64_t position() const { return segment_->size() + buffer_.size(); }
  // Takes what is appended to it; flush_if_full() is to follow, unless the step ends.
  std::string& buffer() { return buffer_; }
  Status flush_if_full();
  // Appends elements, which are copied only if they are few.
  Status append(ByteSpan elements);
  // Once this returns success, the step is there. After a failure it can be abandoned.
  Status commit_step(std::string_view entries);
  // Leaves nothing of the open step.
  void abandon_step();

  // Writes the footer and the last entry of the log, if there is a step, and hands both files over.
  // A step that is open is abandoned. Nothing may be called afterwards.
  Status close();

 private:
  GrowingSegment(std::string path, std::unique_ptr<storage::AppendFile> segment,
                 std::unique_ptr<storage::AppendFile> log, Durability durable);
  Status append_durably(storage::AppendFile& file, std::string_view text) const;
  Status write_end();

  std::string path_;
  std::unique_ptr<storage::AppendFile> segment_;
  std::unique_ptr<storage::AppendFile> log_;
  Durability durable_;
  std::string log_text_;  // what the log holds
  std::string buffer_;    // what is not in the segment yet
  uint64_t base_ = 0;
  bool in_step_ = false;
};

}  // namespace smd::internal
