#pragma once

// The parameters of a request: what follows the '?' of its address, decoded and checked. Nothing is
// guessed: a name that is unknown, a value that is given twice or cannot be read is an error that
// names it. Plain values and pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/types/mode.h"

namespace smd::server {

// A parameter that a route understands.
struct ParameterSpec {
  std::string_view name;
  bool is_repeated = false;
  std::string_view default_text{};  // what leaving it out means; "": something else
};

// Bounds of a number, both allowed.
struct Bounds {
  int64_t least = 0;
  int64_t most = INT64_MAX;
};

class Query final {
 public:
  // `text` is not decoded yet. invalid_argument: a wrong escape, text that is no UTF-8, a control
  // character, or more than 512 parameters.
  static Result<Query> parse(std::string_view text);

  // invalid_argument: a name that is not in the table, or given twice though not repeated.
  Status check(std::span<const ParameterSpec> table) const;

  bool has(std::string_view name) const;
  // nullopt: not given. invalid_argument: empty.
  Result<std::optional<std::string>> text(std::string_view name) const;
  // invalid_argument: missing or empty.
  Result<std::string> required_text(std::string_view name) const;
  // Sorted, as everything here is: the order in which parameters are given does not matter.
  std::vector<std::string> texts(std::string_view name) const;
  // invalid_argument, here and below: no whole number in decimal digits, or out of bounds.
  Result<std::optional<int64_t>> integer(std::string_view name, const Bounds& bounds) const;
  Result<std::vector<int64_t>> integers(std::string_view name, const Bounds& bounds) const;
  // A finite number of at least 0.
  Result<double> number(std::string_view name, double without) const;
  // One of the choices.
  Result<std::optional<size_t>> choice(std::string_view name,
                                       std::span<const std::string_view> choices) const;
  // Upper case only; Mode::global without.
  Result<Mode> mode() const;

  // Encoded anew, without parameters that have their default: two requests for the same answer have
  // the same text. Without '?'; empty: no parameters.
  std::string canonical(std::span<const ParameterSpec> table) const;

  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }
  // All of that name.
  void remove(std::string_view name) {
    std::erase_if(pairs_, [&](const auto& pair) { return pair.first == name; });
  }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;  // sorted
};

// As encodeURIComponent does.
std::string encode_component(std::string_view text);
// Escapes become bytes. invalid_argument: a wrong escape, no UTF-8, a control character.
Result<std::string> decode_component(std::string_view text, bool plus_is_blank);
bool is_utf8(std::string_view text);

}  // namespace smd::server
