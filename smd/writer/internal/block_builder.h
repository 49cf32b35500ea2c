#pragma once

// Gathers the numbers of a step and lays them out as a block. Steps mostly bring the same numbers
// in the same order: then nothing is looked up, formatted or allocated. One thread at a time.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/format/packed_log.h"

namespace smd::internal {

// Texts numbered in the order of their arrival.
class NameTable final {
 public:
  uint32_t add(std::string_view name);
  const std::string& operator[](uint32_t id) const { return names_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(names_.size()); }

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::deque<std::string> names_;  // never moved: schemas point to them
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> ids_;
};

class BlockBuilder final {
 public:
  // One number as it comes in: `op` is empty for a value, `bits` has size_of(dtype) bytes.
  struct Number {
    std::string_view op;
    DType dtype = DType::float32;
    uint8_t rank = 1;
    std::array<std::byte, 8> bits{};
  };

  // What a block of a schema holds, and where.
  struct Schema {
    format::PackedSchema packed;    // texts point into the builder
    std::vector<uint32_t> offsets;  // in the block, one per number in the order of arrival
    uint64_t size_bytes = 0;
    bool logged = false;  // for the owner, who resets it with forget_logged()
  };

  explicit BlockBuilder(NameTable& names) : names_(names) { ops_.add(""); }

  void add(std::string_view tensor, const Number& number) { add(tensor, {&number, 1}); }
  void add(std::string_view tensor, std::span<const Number> numbers);
  bool empty() const { return bits_count_ == 0; }
  // The schema of the numbers so far; `block` gets their bytes.
  Schema& finish(Bytes& block);
  // Ends the step: the next one is expected to be like the last that was finished.
  void clear();
  void forget_logged();

 private:
  // A number without its bits.
  struct Key {
    uint32_t tensor = 0;
    uint32_t op = 0;  // number in ops_
    DType dtype = DType::float32;
    uint8_t rank = 1;

    bool operator==(const Key&) const = default;
  };
  struct Known {
    std::vector<Key> keys;  // in the order of arrival
    Schema schema;
  };

  bool follows(std::string_view tensor, std::span<const Number> numbers) const;
  Known& known_for(const std::vector<Key>& keys);
  void lay_out(Known& known, uint32_t id) const;

  NameTable& names_;
  NameTable ops_;
  std::vector<std::unique_ptr<Known>> known_;
  std::unordered_multimap<uint64_t, Known*> by_hash_;
  Known* last_ = nullptr;   // that of the step before
  bool following_ = false;  // this step is like it so far
  std::vector<Key> keys_;   // of this step, once it is not
  std::vector<uint64_t> bits_;
  size_t bits_count_ = 0;
};

}  // namespace smd::internal
