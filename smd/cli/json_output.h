#pragma once

// What commands print with --json: one document on one line, or one per line for commands that
// stream. Pure functions.

#include <iosfwd>

#include "smd/base/json.h"

namespace smd::cli {

// One line, flushed, so that whoever reads a stream of documents sees each at once.
void write_json(std::ostream& out, const Json& document);

// A number, or the strings "NaN", "Infinity", "-Infinity": JSON has no such numbers.
Json json_number(double value);

}  // namespace smd::cli
