#pragma once

// The index of one step and worker: which tensor lies where in the event file.
// IndexBuilder: one thread at a time. parse_index: pure function.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"

namespace smd::format {

// Builds the JSON text while the records are written. Same entries, same bytes.
class IndexBuilder final {
 public:
  void add_tensor(std::string_view name, uint64_t offset, uint64_t length);
  void add_shape(std::string_view name, std::string_view original_name,
                 std::span<const int64_t> shape);
  bool empty() const { return tensors_.empty() && shapes_.empty(); }
  // `event_file` empty: a step that holds only shapes. Leaves the builder empty.
  std::string finish(const StepInfo& step, std::string_view event_file);

 private:
  std::string tensors_;
  std::string shapes_;
};

struct TensorLocation {
  std::string name;
  uint64_t offset = 0;  // of the record's header in the event file
  uint64_t length = 0;  // of the whole record
  // CRC-32C of the record's payload, not masked; nothing: the writer recorded none.
  std::optional<uint32_t> crc32c;
};

struct ShapeEntry {
  std::string name;
  std::string original_name;
  Shape shape;
};

// The step number and the worker are in the file's name, not in its content.
struct Index {
  Mode mode = Mode::global;
  Step mode_step = 0;
  std::string event_file;  // relative to the run's root; empty when there are only shapes
  std::vector<TensorLocation> tensors;
  std::vector<ShapeEntry> shapes;
};

// corrupt: not such a JSON document, a missing part, a negative number; `source` ends the message.
Result<Index> parse_index(std::string_view text, std::string_view source);

}  // namespace smd::format
