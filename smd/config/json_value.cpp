#include "smd/config/json_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "smd/base/json.h"
#include "smd/base/nearest.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 6> kBooleans = {"True", "true", "1", "False", "false", "0"};

// The value as people wrote it, shortened.
std::string shown(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = dump_json(value);
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "…");
  return text;
}

Error wrong(const Json& value, std::string_view key, std::string_view expected) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} is {}; expected {}.", key, shown(value), expected)};
}

std::optional<int64_t> parse_int(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Status append_items(std::vector<std::string>& items, const Json& value, std::string_view key) {
  if (value.is_array()) {
    for (const Json& item : value) SMD_RETURN_IF_ERROR(append_items(items, item, key));
    return {};
  }
  if (value.is_string()) {
    const std::string_view item = trimmed(value.get_ref<const std::string&>());
    if (!item.empty()) items.emplace_back(item);
    return {};
  }
  if (value.is_number()) {
    items.push_back(dump_json(value));
    return {};
  }
  return wrong(value, key, "a comma separated string, or a list of strings or numbers");
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return items;
}

Result<int64_t> json_int(const Json& value, std::string_view key) {
  constexpr std::string_view kExpected = "a whole number";
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return wrong(value, key, kExpected);
    }
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // above 2^53 a double is no longer one integer
    const double number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kExact) {
      return wrong(value, key, kExpected);
    }
    return static_cast<int64_t>(number);
  }
  if (value.is_string()) {
    if (const auto number = parse_int(value.get_ref<const std::string&>())) return *number;
  }
  return wrong(value, key, kExpected);
}

Result<double> json_number(const Json& value, std::string_view key) {
  double number = std::numeric_limits<double>::quiet_NaN();
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const std::string_view text = trimmed(value.get_ref<const std::string&>());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      number = std::numeric_limits<double>::quiet_NaN();
    }
  }
  if (!std::isfinite(number)) return wrong(value, key, "a number");
  return number;
}

Result<bool> json_bool(const Json& value, std::string_view key) {
  if (value.is_boolean()) return value.get<bool>();
  const std::string text = value.is_string()
                               ? std::string(trimmed(value.get_ref<const std::string&>()))
                           : value.is_number_integer() ? dump_json(value)
                                                       : std::string();
  for (size_t i = 0; i < kBooleans.size(); ++i) {
    if (text == kBooleans[i]) return i < kBooleans.size() / 2;
  }
  Error error = wrong(value, key, "true or false");
  error.message += did_you_mean(text, kBooleans);
  return error;
}

Result<std::string> json_string(const Json& value, std::string_view key) {
  if (value.is_string()) return value.get<std::string>();
  return wrong(value, key, "a string");
}

Result<std::vector<std::string>> json_list(const Json& value, std::string_view key) {
  if (value.is_string()) return split_list(value.get_ref<const std::string&>());
  std::vector<std::string> items;
  SMD_RETURN_IF_ERROR(append_items(items, value, key));
  return items;
}

Result<std::vector<int64_t>> json_int_list(const Json& value, std::string_view key) {
  SMD_TRY(const std::vector<std::string> items, json_list(value, key));
  std::vector<int64_t> numbers;
  numbers.reserve(items.size());
  for (const std::string& item : items) {
    const auto number = parse_int(item);
    if (!number) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} holds '{}'; expected whole numbers.", key, item)};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::string unknown_key_message(std::string_view key, std::string_view place,
                                std::span<const std::string_view> known) {
  return fmt::format("Unknown key '{}' in {}; known keys are {}.{}", key, place,
                     fmt::join(known, ", "), did_you_mean(key, known));
}

Status check_keys(const Json& value, std::string_view place,
                  std::span<const std::string_view> known, UnknownKeys unknown) {
  if (!value.is_object()) return wrong(value, place, "an object");
  if (unknown == UnknownKeys::ignore) return {};
  for (const auto& [key, item] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Error{ErrorCode::invalid_argument, unknown_key_message(key, place, known)};
    }
  }
  return {};
}

const Json* json_member(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace smd
