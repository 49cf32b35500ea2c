#include "smd/cli/json_output.h"

#include <cmath>
#include <ostream>

namespace smd::cli {

void write_json(std::ostream& out, const Json& document) {
  out << dump_json(document) << '\n' << std::flush;
}

Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace smd::cli
