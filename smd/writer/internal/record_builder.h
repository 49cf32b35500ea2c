#pragma once

// Writes the tensors and texts of a step into a segment, each as a record or, where one would be
// too long, as several, and keeps the list of them for the log. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/format/packed_log.h"
#include "smd/format/tensor_record.h"
#include "smd/types/step.h"
#include "smd/writer/internal/block_builder.h"
#include "smd/writer/internal/growing_segment.h"

namespace smd::internal {

class RecordBuilder final {
 public:
  // Borrows the names. A tensor whose record would be longer is stored in parts.
  RecordBuilder(NameTable& names, uint64_t max_record_bytes)
      : names_(names), max_record_bytes_(max_record_bytes) {}

  // What follows goes to this segment, which must live and be in this step until clear().
  void begin_step(GrowingSegment& segment, const StepInfo& step);

  // See Sink. `elements` may be the first part only; the rest follows through more().
  Status tensor(const format::TensorHead& head, ByteSpan elements);
  Status more(ByteSpan elements);
  Status strings(const format::TensorHead& head, std::span<const std::string_view> strings);

  // The records of the step so far. The owner may move them out and back.
  std::vector<format::PackedRaw>& raws() { return raws_; }
  bool empty() const { return raws_.empty(); }
  // A tensor of the step is stored in parts.
  bool has_parts() const { return has_parts_; }
  // Ends the step.
  void clear();

 private:
  // A tensor whose elements are arriving.
  struct Incoming {
    std::string name;
    std::vector<std::string> other_names;
    size_t first_raw = 0;  // of its records
    DType dtype = DType::float32;
    Shape shape;
    double wall_secs = 0;
    uint64_t count = 0;     // of elements
    uint64_t per_part = 0;  // 0: it is one record
    uint64_t next = 0;      // the first element of the next record
  };
  // The record that takes them.
  struct Pending {
    uint64_t left = 0;  // bytes of elements to come
    uint32_t crc = 0;   // of the payload so far
    std::string end;
  };

  void plan_parts(uint64_t overhead);
  void begin_record();
  void begin_raw(const format::TensorHead& head, uint64_t length);
  Status append_checked(ByteSpan elements);
  Status end_record();
  void list_other_names();

  NameTable& names_;
  const uint64_t max_record_bytes_;
  // Of the step.
  GrowingSegment* segment_ = nullptr;
  StepInfo step_;
  std::vector<format::PackedRaw> raws_;
  bool has_parts_ = false;
  std::optional<Incoming> incoming_;
  std::optional<Pending> pending_;
};

}  // namespace smd::internal
