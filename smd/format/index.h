#pragma once

// The index of one step and worker: which tensor lies where in the event file.
// IndexBuilder, IndexParser: one thread at a time. parse_index: pure function.

#include <memory>
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
  // `crc32c` is that of the record's payload: the record itself cannot hold it, as the original's
  // reader wants a constant there. It stands under a key that other readers ignore.
  void add_tensor(std::string_view name, uint64_t offset, uint64_t length,
                  std::optional<uint32_t> crc32c = {});
  void add_shape(std::string_view name, std::string_view original_name,
                 std::span<const int64_t> shape);
  bool empty() const { return tensors_.empty() && shapes_.empty(); }
  // `event_file` empty: a step that holds only shapes. Leaves the builder empty.
  std::string finish(const StepInfo& step, std::string_view event_file);

 private:
  std::string tensors_;
  std::string shapes_;
};

template <typename Text>
struct TensorLocationOf {
  Text name;
  uint64_t offset = 0;             // of the record's header in the event file
  uint64_t length = 0;             // of the whole record
  std::optional<uint32_t> crc32c;  // of its payload; other writers do not say it
};

template <typename Text>
struct ShapeEntryOf {
  Text name;
  Text original_name;
  Shape shape;
};

// The step number and the worker are in the file's name, not in its content.
template <typename Text>
struct IndexOf {
  Mode mode = Mode::global;
  Step mode_step = 0;
  Text event_file;  // relative to the run's root; empty when there are only shapes
  std::vector<TensorLocationOf<Text>> tensors;
  std::vector<ShapeEntryOf<Text>> shapes;
};

using TensorLocation = TensorLocationOf<std::string>;
using ShapeEntry = ShapeEntryOf<std::string>;
using Index = IndexOf<std::string>;
using IndexView = IndexOf<std::string_view>;

// Parses one index after the other in the same memory.
class IndexParser final {
 public:
  IndexParser();
  ~IndexParser();

  // Valid until the next call; the views point into the parser. corrupt: not such a JSON document,
  // a missing part, a negative number; `source` ends the message.
  Result<const IndexView*> parse(std::string_view text, std::string_view source);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// The same for a single index, as a value of its own.
Result<Index> parse_index(std::string_view text, std::string_view source);

}  // namespace smd::format
