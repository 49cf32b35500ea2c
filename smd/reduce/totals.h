#pragma once

// What one pass over a tensor leaves behind, from which every reduction is finished.
// There is one for the values and one for their absolute values. Plain value.

#include <cstdint>

#include "smd/reduce/number.h"

namespace smd {

// The parts of Totals that cost work. A kind names those its `finish` reads; the others are unset.
enum class Needs : uint8_t {
  nothing = 0,
  extrema = 1,     // min, max
  sum = 2,         // sum
  moments = 4,     // total, magnitude, squares
  deviations = 8,  // squared_deviations, and the moments
  product = 16,    // prod
  middle = 32,     // middle; needs a sorted copy, so it is not part of the fused pass
};

constexpr Needs operator|(Needs a, Needs b) {
  return static_cast<Needs>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Needs set, Needs part) {
  return (static_cast<uint8_t>(set) & static_cast<uint8_t>(part)) != 0;
}

struct Totals {
  // float32 or float64: the type of every result that is not an element, a sum or a product.
  DType real_type = DType::float64;
  int64_t count = 0;  // above zero

  // In their final types: those of the elements, or 64-bit wrapping integers.
  Number min, max, sum, prod;

  // Accumulated in float64, of the elements times 2^exponent. The exponent is not zero only where
  // squares of float64 elements would leave the range of float64.
  int exponent = 0;
  double total = 0;               // Σx
  double magnitude = 0;           // Σ|x|
  double squares = 0;             // Σx²
  double squared_deviations = 0;  // Σ(x − mean)²

  double middle = 0;  // the median, not scaled

  // A result computed from scaled fields and growing with x to the given power: a mean has power 1,
  // a variance power 2, the median (which is not scaled) power 0.
  Number real(double value, int power) const;
};

}  // namespace smd
