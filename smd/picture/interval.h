#pragma once

// The numbers that an axis shows. Plain value.

#include <algorithm>
#include <cmath>
#include <limits>

namespace smd {

// A closed interval of finite doubles, empty at first. Nothing here overflows: the length of an
// interval may be more than a double holds, so halves are subtracted.
struct Interval {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }

  // Of an interval that is not empty.
  double half_length() const { return high / 2 - low / 2; }
  // On both sides, as far as there are finite numbers.
  void widen(double by) {
    low = std::max(low - by, std::numeric_limits<double>::lowest());
    high = std::min(high + by, std::numeric_limits<double>::max());
  }

  // Where a value lies: 0 at `low`, 1 at `high`, which must not be the same.
  double part(double value) const { return (value / 2 - low / 2) / half_length(); }
  // The value that lies there.
  double at(double part) const { return std::lerp(low, high, part); }
};

}  // namespace smd
