#include "smd/rules/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace smd::rules {

std::string number_text(double number, int digits) {
  if (std::isnan(number)) return "NaN";
  return fmt::format("{:.{}g}", number, digits);
}

}  // namespace smd::rules
