#include "smd/reduce/totals.h"

#include <cmath>

namespace smd {

Number Totals::real(double value, int power) const {
  return Number::real(real_type, exponent == 0 ? value : std::ldexp(value, -power * exponent));
}

}  // namespace smd
