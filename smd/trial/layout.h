#pragma once

// What one step of one worker holds and where it lies, from where the step begins in its file.
// Steps that save the same tensors mostly have the same layout, so a run has few of them.
// Immutable, thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/tensor/tensor_view.h"
#include "smd/trial/names.h"

namespace smd {

class Layout final {
 public:
  // How something is stored: as a record of its own, as one number of a block, whose shape is then
  // [1] or, for a scalar, [], or as several records, of which each holds a part of the elements.
  enum class Form : uint8_t { record, number, scalar, split };
  struct Entry {
    uint32_t tensor = 0;
    uint32_t slot = 0;
    uint64_t offset = 0;
    uint64_t length = 0;
    Form form = Form::record;
    DType dtype = DType::float32;  // of a number or a split tensor; a record says it itself

    bool operator==(const Entry&) const = default;
  };
  struct ShapeOf {
    uint32_t tensor = 0;
    std::string original_name;
    Shape shape;

    bool operator==(const ShapeOf&) const = default;
  };

  // Where the numbers of a step stand together.
  struct Block {
    uint64_t offset = 0;
    uint64_t length = 0;

    bool operator==(const Block&) const = default;
  };

  // A tensor that is stored in parts. Together they hold all its elements, in order.
  struct Piece {
    uint64_t offset = 0;  // of the record
    uint64_t length = 0;
    uint64_t first = 0;   // number of its first element
    uint64_t count = 0;   // of elements
    uint32_t number = 0;  // among all pieces of the step

    bool operator==(const Piece&) const = default;
  };
  struct Split {
    uint32_t tensor = 0;
    uint32_t slot = 0;
    Shape shape;
    std::vector<Piece> pieces;

    bool operator==(const Split&) const = default;
  };

  // In the order of writing: of several entries for one tensor and slot the last counts.
  Layout(std::vector<Entry> entries, std::vector<ShapeOf> shapes);
  Layout(std::vector<Entry> entries, std::vector<ShapeOf> shapes, Block block,
         std::vector<Split> splits = {});

  // Sorted by tensor, then slot.
  std::span<const Entry> entries() const { return entries_; }
  // Position in entries(), nullopt: not here.
  std::optional<uint32_t> find(uint32_t tensor, Slot slot) const;
  // Those of one tensor.
  std::span<const Entry> entries_of(uint32_t tensor) const;
  const ShapeOf* shape_of(uint32_t tensor) const;
  std::span<const ShapeOf> shapes() const { return shapes_; }
  bool holds(uint32_t tensor) const {
    return !entries_of(tensor).empty() || shape_of(tensor) != nullptr;
  }
  // Each tensor with an entry or a shape, once, in the order of their numbers.
  std::vector<uint32_t> tensors() const;
  const Block& block() const { return block_; }
  // Of an entry of that form.
  const Split& split_of(const Entry& entry) const;
  // For each position of the list that the layout was made of, the position here.
  const std::vector<uint32_t>& order() const { return order_; }

  bool operator==(const Layout& other) const {
    return entries_ == other.entries_ && shapes_ == other.shapes_ && block_ == other.block_ &&
           splits_ == other.splits_;
  }

 private:
  std::vector<Entry> entries_;
  std::vector<ShapeOf> shapes_;  // sorted by tensor
  std::vector<uint32_t> order_;
  Block block_;
  std::vector<Split> splits_;
};

}  // namespace smd
