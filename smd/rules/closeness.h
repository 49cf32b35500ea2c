#pragma once

// Whether two tensors are the same within a tolerance, as numpy.isclose says it: the tolerance is
// relative to one of them, the reference. One pass over both. Pure functions, thread-safe.

#include <cstdint>

#include "smd/base/result.h"
#include "smd/rules/parameters.h"
#include "smd/tensor/tensor_view.h"

namespace smd::rules {

// x is close to r if both are equal, or if |x − r| ≤ absolute + relative · |r| and that is finite.
struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool equal_nan = false;  // NaN is close to NaN
  // Integers and booleans must be equal: counters grow by less than a relative tolerance.
  bool exact_integers = true;
};

struct Closeness {
  int64_t differing = 0;  // elements that are not close
  // Over all elements, infinite where NaN or infinity stands against something else.
  double max_absolute = 0;
  double max_relative = 0;  // |x − r| / |r|
  // Of the element that is the furthest beyond its tolerance.
  int64_t worst = -1;  // position in C order; -1: all are close
  double value = 0;    // the magnitude of a complex number, like the next
  double reference = 0;
  double difference = 0;
  double allowed = 0;

  bool all_close() const { return differing == 0; }
};

enum class Thoroughness : uint8_t { until_one_differs, all };

// Tensors of one shape; element types may differ. `unsupported`: strings. `until_one_differs`:
// nothing but all_close() is good when something differs.
Result<Closeness> compare(const TensorView& x, const TensorView& reference,
                          const Tolerance& tolerance, Thoroughness thoroughness);

// Of the parameters rtol, atol and equal_nan. Given tolerances hold for integers, too.
Tolerance tolerance_of(const Parameters& parameters);

// For parameter tables.
inline constexpr ParameterSpec kRtol = {
    .name = "rtol",
    .type = ParameterType::real,
    .default_text = "1e-05",
    .help = "Values are the same up to this share of the reference.",
    .range = "[0,]"};
inline constexpr ParameterSpec kAtol = {.name = "atol",
                                        .type = ParameterType::real,
                                        .default_text = "1e-08",
                                        .help = "Values are the same up to this difference.",
                                        .range = "[0,]"};

}  // namespace smd::rules
