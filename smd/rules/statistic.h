#pragma once

// The numbers about a tensor that rules ask for, sets of them, and which of them follow from
// others: the one place that knows what saved reductions tell. Immutable tables and pure functions.

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "smd/reduce/reduce.h"

namespace smd::rules {

enum class Statistic : uint8_t {
  value,  // of a tensor that is a single number
  min,
  max,
  mean,
  median,
  std,
  variance,
  sum,
  prod,
  l1,
  l2,
  abs_min,
  abs_max,
  abs_mean,  // mean of the magnitudes
  abs_median,
  abs_std,
  abs_variance,
  abs_sum,
  abs_prod,
  abs_l1,
  abs_l2,
  nan_count,
  inf_count,
  zero_count,
  nonfinite,     // 1: some element is NaN or infinite, else 0
  has_nan,       // 1: some element is NaN, else 0
  all_zero,      // 1: every element is zero, else 0
  zero_percent,  // of the elements that are zero
};
inline constexpr size_t kStatisticCount = static_cast<size_t>(Statistic::zero_percent) + 1;

// "abs_mean", "nan_count".
std::string_view name_of(Statistic statistic);
// From a name or its spelling in configuration files ("l2_norm"); nullopt: no such statistic.
std::optional<Statistic> find_statistic(std::string_view name);
// As it is stored; nullopt: it is not a reduction.
std::optional<Reduction> reduction_of(Statistic statistic);

class StatisticSet final {
 public:
  constexpr StatisticSet() = default;
  constexpr StatisticSet(std::initializer_list<Statistic> members) {
    for (Statistic member : members) add(member);
  }

  constexpr void add(Statistic s) { bits_ |= uint32_t{1} << static_cast<uint8_t>(s); }
  constexpr void merge(StatisticSet other) { bits_ |= other.bits_; }
  constexpr bool contains(Statistic s) const { return (bits_ >> static_cast<uint8_t>(s) & 1) != 0; }
  constexpr bool contains_all(StatisticSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr StatisticSet without(StatisticSet other) const {
    return StatisticSet(bits_ & ~other.bits_);
  }
  template <typename F>
  void for_each(F&& f) const {
    for (uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      f(static_cast<Statistic>(std::countr_zero(rest)));
    }
  }
  constexpr bool operator==(const StatisticSet&) const = default;

 private:
  constexpr explicit StatisticSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// What may be known of one tensor at one step. Ask only for numbers that are present.
struct Statistics {
  StatisticSet present;
  double numbers[kStatisticCount];

  bool has(Statistic s) const { return present.contains(s); }
  double operator[](Statistic s) const { return numbers[static_cast<size_t>(s)]; }
  void set(Statistic s, double number) {
    present.add(s);
    numbers[static_cast<size_t>(s)] = number;
  }
  void clear() { present = {}; }
};

// Stored statistics from which a wanted one may follow; holds those that are wanted, too.
StatisticSet sources_of(StatisticSet wanted);

// Adds those of `wanted` that follow exactly from what is present. `shape`: nullptr, not known.
// The l1 of a tensor with several dimensions is never used: others store a matrix norm there.
void derive(StatisticSet wanted, const Shape* shape, Statistics& statistics);

// Adds those of `wanted` that the element type has, in one pass over the elements. A tensor without
// elements gets nothing.
Status compute(const TensorView& tensor, StatisticSet wanted, Statistics& statistics);

}  // namespace smd::rules
