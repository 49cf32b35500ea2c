#pragma once

// Reads the loosely typed values of configuration files, where numbers, booleans and lists may all
// arrive as strings. `key` is the name that error messages give to the value. Pure functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"

namespace smd {

// What to do with a key that nobody knows: people's input refuses it, files of other versions may
// hold more than this one understands.
enum class UnknownKeys { refuse, ignore };

// A whole number: 10, 10.0 or "10".
Result<int64_t> json_int(const Json& value, std::string_view key);

// A number: 0.01, 1 or "0.01"; neither infinite nor NaN.
Result<double> json_number(const Json& value, std::string_view key);

// true, false, 1, 0 or one of the strings "True" "true" "1" "False" "false" "0".
Result<bool> json_bool(const Json& value, std::string_view key);

Result<std::string> json_string(const Json& value, std::string_view key);

// A comma separated string, one number, or a list of strings, numbers and lists. Items are trimmed
// and empty ones dropped. Only the string form is split: an item of a list may hold commas.
Result<std::vector<std::string>> json_list(const Json& value, std::string_view key);

// Like json_list, every item a whole number.
Result<std::vector<int64_t>> json_int_list(const Json& value, std::string_view key);

// The items of a comma separated text, trimmed, without empty ones.
std::vector<std::string> split_list(std::string_view text);

// Without white space at both ends; a view into `text`.
std::string_view trimmed(std::string_view text);

// "Unknown key 'x' in <place>; …" with the nearest of `known` and the whole list.
std::string unknown_key_message(std::string_view key, std::string_view place,
                                std::span<const std::string_view> known);

// Error unless `value` is an object and, when unknown keys are refused, all its keys are `known`.
Status check_keys(const Json& value, std::string_view place,
                  std::span<const std::string_view> known, UnknownKeys unknown);

// The member `key`, or nullptr when it is absent or null. `object` must be an object.
const Json* json_member(const Json& object, std::string_view key);

}  // namespace smd
