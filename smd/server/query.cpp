#include "smd/server/query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "smd/base/nearest.h"
#include "smd/base/percent.h"

namespace smd::server {
namespace {

constexpr size_t kMostParameters = 512;
// Of a wrong value in a message.
constexpr size_t kMostShown = 100;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

std::string shown(std::string_view text) {
  if (text.size() <= kMostShown) return std::string(text);
  size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

Result<int64_t> parse_integer(std::string_view name, std::string_view text, const Bounds& bounds) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  const bool is_too_large = error == std::errc::result_out_of_range;
  if (!is_number && !is_too_large) {
    return wrong(
        fmt::format("The parameter {} is '{}', which is no whole number.", name, shown(text)));
  }
  if (is_too_large || value < bounds.least || value > bounds.most) {
    return wrong(fmt::format("The parameter {} is {}, but must be from {} to {}.", name,
                             shown(text), bounds.least, bounds.most));
  }
  return value;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80   ? 1
                          : byte < 0xC2 ? 0
                          : byte < 0xE0 ? 2
                          : byte < 0xF0 ? 3
                          : byte < 0xF5 ? 4
                                        : 0;
    if (length == 0 || text.size() - i < length) return false;
    uint32_t code = length == 1 ? byte : byte & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (is_overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

std::string encode_component(std::string_view text) { return percent_encoded(text, "!*'()"); }

Result<std::string> decode_component(std::string_view text, bool plus_is_blank) {
  auto decoded = percent_decoded(text, plus_is_blank);
  if (!decoded) return wrong("The address has a '%' without two hexadecimal digits behind it.");
  std::string& out = *decoded;
  if (!is_utf8(out)) return wrong("The address holds bytes that are no UTF-8.");
  // Names of tensors may hold anything else, and nobody else needs these.
  if (out.find('\0') != std::string::npos) return wrong("The address holds a zero byte.");
  return std::move(out);
}

Result<Query> Query::parse(std::string_view text) {
  Query out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    if (out.pairs_.size() == kMostParameters) {
      return wrong(fmt::format("There are more than {} parameters.", kMostParameters));
    }
    const size_t equals = std::min(part.find('='), part.size());
    SMD_TRY(std::string name, decode_component(part.substr(0, equals), true));
    SMD_TRY(std::string value,
            decode_component(part.substr(std::min(equals + 1, part.size())), true));
    out.pairs_.emplace_back(std::move(name), std::move(value));
  }
  std::ranges::sort(out.pairs_);
  return out;
}

Status Query::check(std::span<const ParameterSpec> table) const {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const std::string& name = pairs_[i].first;
    const auto spec = std::ranges::find(table, name, &ParameterSpec::name);
    if (spec == table.end()) {
      std::vector<std::string_view> names;
      for (const ParameterSpec& one : table) names.push_back(one.name);
      return wrong(fmt::format("There is no parameter '{}' here.{}", shown(name),
                               names.empty() ? " There are none." : did_you_mean(name, names)));
    }
    const bool is_second =
        std::any_of(pairs_.begin(), pairs_.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const auto& pair) { return pair.first == name; });
    if (is_second && !spec->is_repeated) {
      return wrong(fmt::format("The parameter {} is given twice.", name));
    }
  }
  return {};
}

bool Query::has(std::string_view name) const {
  return std::ranges::any_of(pairs_, [&](const auto& pair) { return pair.first == name; });
}

std::vector<std::string> Query::texts(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : pairs_) {
    if (key == name) out.push_back(value);
  }
  return out;
}

Result<std::optional<std::string>> Query::text(std::string_view name) const {
  const auto found =
      std::ranges::find_if(pairs_, [&](const auto& pair) { return pair.first == name; });
  if (found == pairs_.end()) return std::optional<std::string>();
  if (found->second.empty()) return wrong(fmt::format("The parameter {} is empty.", name));
  return std::optional(found->second);
}

Result<std::string> Query::required_text(std::string_view name) const {
  SMD_TRY(auto found, text(name));
  if (!found) return wrong(fmt::format("The parameter {} is missing.", name));
  return std::move(*found);
}

Result<std::optional<int64_t>> Query::integer(std::string_view name, const Bounds& bounds) const {
  SMD_TRY(const auto given, text(name));
  if (!given) return std::optional<int64_t>();
  SMD_TRY(const int64_t value, parse_integer(name, *given, bounds));
  return std::optional(value);
}

Result<std::vector<int64_t>> Query::integers(std::string_view name, const Bounds& bounds) const {
  std::vector<int64_t> out;
  for (const std::string& one : texts(name)) {
    SMD_TRY(const int64_t value, parse_integer(name, one, bounds));
    out.push_back(value);
  }
  return out;
}

Result<double> Query::number(std::string_view name, double without) const {
  SMD_TRY(const auto given, text(name));
  if (!given) return without;
  double value = 0;
  const char* const begin = given->data();
  const char* const end = begin + given->size();
  const auto [at, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || at != end || !std::isfinite(value) || value < 0) {
    return wrong(fmt::format("The parameter {} is '{}', but must be a number of at least 0.", name,
                             shown(*given)));
  }
  return value;
}

Result<std::optional<size_t>> Query::choice(std::string_view name,
                                            std::span<const std::string_view> choices) const {
  SMD_TRY(const auto given, text(name));
  if (!given) return std::optional<size_t>();
  const auto found = std::ranges::find(choices, *given);
  if (found != choices.end()) return std::optional(static_cast<size_t>(found - choices.begin()));
  return wrong(fmt::format("The parameter {} is '{}', but must be one of {}.{}", name,
                           shown(*given), fmt::join(choices, ", "), did_you_mean(*given, choices)));
}

Result<Mode> Query::mode() const {
  std::vector<std::string_view> names;
  for (const Mode mode : kModes) names.push_back(name_of(mode));
  SMD_TRY(const auto found, choice("mode", names));
  return found ? kModes[*found] : Mode::global;
}

std::string Query::canonical(std::span<const ParameterSpec> table) const {
  std::string out;
  for (const auto& [name, value] : pairs_) {
    const auto spec = std::ranges::find(table, name, &ParameterSpec::name);
    if (spec != table.end() && !spec->default_text.empty() && spec->default_text == value) continue;
    if (!out.empty()) out += '&';
    out += encode_component(name) + "=" + encode_component(value);
  }
  return out;
}

}  // namespace smd::server
