#pragma once

// Tensor, worker and reduction names as small numbers. Append-only. Readers see it as const, shared
// between snapshots; the refresher copies it before it adds to one that is published.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace smd {

// One list of distinct texts, numbered in the order of their arrival.
class NameList final {
 public:
  uint32_t add(std::string_view name);
  std::optional<uint32_t> find(std::string_view name) const;
  const std::string& operator[](uint32_t id) const { return names_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(names_.size()); }
  const std::vector<std::string>& all() const { return names_; }

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> ids_;
};

// What is stored of a tensor at a step: its value or one of its reductions.
class Slot final {
 public:
  static constexpr Slot value() { return Slot(0); }
  // `op` is a number of Names::ops.
  static constexpr Slot reduction(uint32_t op, bool abs) {
    return Slot(1 + 2 * op + (abs ? 1 : 0));
  }
  static constexpr Slot from_id(uint32_t id) { return Slot(id); }

  uint32_t id() const { return id_; }
  bool is_value() const { return id_ == 0; }
  uint32_t op() const { return (id_ - 1) / 2; }
  bool abs() const { return id_ != 0 && id_ % 2 == 0; }

  bool operator==(const Slot&) const = default;

 private:
  constexpr explicit Slot(uint32_t id) : id_(id) {}
  uint32_t id_;
};

struct Names {
  NameList tensors;
  NameList workers;
  NameList ops;  // "min", "l2"; others' reductions, too
};

}  // namespace smd
