#pragma once

// Configuration JSON with good errors and ordered keys. Hot reads use simdjson instead.
// Pure functions, thread-safe.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"

// Compiled once, in json.cpp: they would take a third of the time of most files that use them.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace smd {

// Parses one JSON document. Trailing commas in arrays and objects are accepted. An error says line
// and column and what was expected; `source` (a file name or "") ends the sentence.
Result<Json> parse_json(std::string_view text, std::string_view source);

// The text in double quotes, with every non-ASCII character as \uXXXX; invalid UTF-8 becomes
// U+FFFD. Appends to `out`. Equal to Python's json.dumps for valid text.
void append_json_string(std::string& out, std::string_view text);

// One line, separators ", " and ": ", ASCII only: what Python's json.dumps writes.
std::string dump_json(const Json& value);

}  // namespace smd
