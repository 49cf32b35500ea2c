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
  std::vector<std::string> other_names;
  // Nothing: a file version, graph or other event without a tensor.
  std::optional<StoredTensor> tensor;
};

// The same without a copy: `name` and, as a rule, `elements` point into the payload.
struct TensorContent {
  DType dtype = DType::float32;
  Shape shape;
  ByteSpan elements;  // into the payload, or into `decoded`
  Bytes decoded;      // elements that do not stand in the payload as they are
  std::vector<std::string> strings;
  std::vector<std::string_view> other_names;
};

struct EventView {
  double wall_secs = 0;
  StepInfo step;
  std::string_view name;
  std::optional<TensorContent> tensor;

  // Its first name, or one of the others.
  bool is_named(std::string_view wanted) const;
};

// corrupt: not a valid Event, or the elements do not fit the shape. unsupported: an element type
// that NumPy has no name for.
Result<Event> parse_event(ByteSpan payload);
Result<EventView> view_event(ByteSpan payload);

// Where the elements stand in a record of which only the beginning is at hand.
struct ContentPlace {
  uint64_t offset = 0;  // from the start of the record
  uint64_t length = 0;
};

// nullopt: the beginning is too short, or the tensor is not stored as plain elements.
std::optional<ContentPlace> locate_content(ByteSpan record_start);

// What a record says about its tensor besides the elements.
struct TensorOutline {
  DType dtype = DType::float32;
  Shape shape;
  double wall_secs = 0;
};

// From a record of which only the bytes before and after the elements are at hand, see
// locate_content(); of those after them the first few are enough.
std::optional<TensorOutline> outline_tensor(ByteSpan record_start, ByteSpan after_content);

}  // namespace smd::format
