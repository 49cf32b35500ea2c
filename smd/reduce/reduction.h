#pragma once

// Which statistics exist and sets of them. Each lives in one file of kinds/, named like its
// constant; the build collects them, so adding a file adds a reduction. Immutable tables,
// thread-safe.

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/reduce/totals.h"

namespace smd {

// Everything about one statistic. A kind knows nothing of absolute values: those are the same
// definition over the Totals of |x|.
struct ReductionKind {
  std::string_view name;         // as stored on disk: "min", "std", "l2"
  bool is_norm = false;          // written "l2_norm" in configuration lists
  Needs needs = Needs::nothing;  // what `finish` reads
  Number (*finish)(const Totals& totals) = nullptr;
  // The textbook definition over at least one value, written without the machinery above.
  // Slow; the tests hold every implementation against it.
  long double (*oracle)(std::span<const long double> values) = nullptr;
};

// All kinds, in a fixed order; at most 16.
std::span<const ReductionKind* const> reduction_kinds();

// One statistic: a kind, over the values or over their absolute values.
class Reduction final {
 public:
  constexpr Reduction(uint8_t kind, bool abs) : id_(static_cast<uint8_t>(kind | (abs ? 16 : 0))) {}
  static constexpr Reduction from_id(uint8_t id) {
    return {static_cast<uint8_t>(id & 15), (id & 16) != 0};
  }

  uint8_t id() const { return id_; }  // 0…31
  const ReductionKind& kind() const { return *reduction_kinds()[id_ & 15]; }
  bool abs() const { return (id_ & 16) != 0; }
  std::string_view op() const { return kind().name; }
  // "abs_l2": the name between the prefix and the tensor name on disk.
  std::string name() const;
  // "abs_l2_norm": the spelling in configuration files.
  std::string config_name() const;

  bool operator==(const Reduction&) const = default;

 private:
  uint8_t id_;
};

// From "min", "abs_mean", "l2", "l2_norm", "abs_l2_norm"; the error names the nearest choice.
Result<Reduction> parse_reduction(std::string_view name);

class ReductionSet final {
 public:
  void add(Reduction r) { bits_ |= uint32_t{1} << r.id(); }
  void merge(ReductionSet other) { bits_ |= other.bits_; }
  bool contains(Reduction r) const { return (bits_ >> r.id() & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  int size() const { return std::popcount(bits_); }
  uint32_t bits() const { return bits_; }

  // Calls f(Reduction) for each member, plain ones before absolute ones.
  template <typename F>
  void for_each(F&& f) const {
    for (uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      f(Reduction::from_id(static_cast<uint8_t>(std::countr_zero(rest))));
    }
  }

  bool operator==(const ReductionSet&) const = default;

 private:
  uint32_t bits_ = 0;
};

// Every kind, of the values and of their absolute values.
ReductionSet all_reductions();

}  // namespace smd
