#include "smd/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace smd {
namespace {

// Values are walked by recursion; no file of ours comes near this depth.
constexpr int kDeepest = 500;
// Keys of one object. Ordered objects are searched from the start, so hostile ones cost the square.
constexpr int kMostKeys = 10'000;

struct TooManyKeys {};

// Blanks every comma that is followed only by white space and a closing bracket, so that positions
// in error messages stay right. nullopt: brackets are nested too deeply.
std::optional<std::string> without_trailing_commas(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  int depth = 0;
  size_t comma = std::string::npos;
  for (size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (std::strchr(" \t\r\n", c) != nullptr && c != '\0') continue;
    if (c == '[' || c == '{') {
      if (++depth > kDeepest) return std::nullopt;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if ((c == ']' || c == '}') && comma != std::string::npos) out[comma] = ' ';
    comma = c == ',' ? i : std::string::npos;
    in_string = c == '"';
  }
  return out;
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

void append(std::string& out, const Json& value) {
  if (value.is_string()) {
    append_json_string(out, value.get_ref<const std::string&>());
  } else if (value.is_object()) {
    const char* separator = "{";
    for (const auto& [key, item] : value.items()) {
      out += separator;
      append_json_string(out, key);
      out += ": ";
      append(out, item);
      separator = ", ";
    }
    out += value.empty() ? "{}" : "}";
  } else if (value.is_array()) {
    const char* separator = "[";
    for (const auto& item : value) {
      out += separator;
      append(out, item);
      separator = ", ";
    }
    out += value.empty() ? "[]" : "]";
  } else {
    out += value.dump();
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view source) {
  const auto plain = without_trailing_commas(text);
  if (!plain) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("Invalid JSON: more than {} brackets are open at once{}{}.", kDeepest,
                             source.empty() ? "" : ", in ", source)};
  }
  try {
    std::vector<int> keys;  // of each open object
    return Json::parse(*plain, [&keys](int, Json::parse_event_t event, Json&) {
      if (event == Json::parse_event_t::object_start) keys.push_back(0);
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key && ++keys.back() > kMostKeys) throw TooManyKeys();
      return true;
    });
  } catch (const TooManyKeys&) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("Invalid JSON: an object has more than {} keys{}{}.", kMostKeys,
                             source.empty() ? "" : ", in ", source)};
  } catch (const Json::exception& e) {
    // nlohmann prefixes "[json.exception.parse_error.101] "; people do not need it.
    std::string_view reason = e.what();
    if (const size_t end = reason.find("] "); end != std::string_view::npos) {
      reason.remove_prefix(end + 2);
    }
    return Error{ErrorCode::invalid_argument, fmt::format("Invalid JSON: {}{}{}.", reason,
                                                          source.empty() ? "" : ", in ", source)};
  }
}

void append_json_string(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  std::string escaped = Json(std::string(text)).dump(-1, ' ', true, Json::error_handler_t::replace);
  // Python leaves DEL as it is and so does nlohmann; \u escapes are lower case in both.
  out += escaped;
}

std::string dump_json(const Json& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace smd
