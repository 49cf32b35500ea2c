#pragma once

// Reads the events that hold tensor records. Accepts what other writers of this format produce,
// too. Pure functions over bytes.

#include <optional>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"

namespace smd::format {

// A tensor as read back. Numbers are in `elements` (C order, little endian), strings in `strings`.
struct StoredTensor {
  DType dtype = DType::float32;
  Shape shape;
  Bytes elements;
  std::vector<std::string> strings;
};

struct Event {
  double wall_secs = 0;
  StepInfo step;
  std::string name;
  // Nothing: a file version, graph or other event without a tensor.
  std::optional<StoredTensor> tensor;
};

// corrupt: not a valid Event, or the elements do not fit the shape. unsupported: an element type
// that NumPy has no name for.
Result<Event> parse_event(ByteSpan payload);

}  // namespace smd::format
