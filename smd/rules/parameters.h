#pragma once

// What a rule is told: the table of its parameters and the values somebody gave. Values arrive as
// strings, as in configuration files, or as native JSON values; after parse() every one is there,
// of the right type and inside of its range. Plain values, thread-safe to read.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "smd/base/json.h"
#include "smd/base/result.h"

namespace smd::rules {

enum class ParameterType : uint8_t { integer, real, boolean, text, list, number_list };
// "int", "float", "bool", "str", "list of str", "list of float".
std::string_view name_of(ParameterType type);

// One line of a rule's table.
struct ParameterSpec {
  std::string_view name;
  ParameterType type = ParameterType::real;
  std::string_view default_text;  // as somebody would give it; "": not given
  std::string_view help;          // one sentence
  std::string_view range{};       // "(0,100)", "[1,]"; of numbers and of items of a number_list
  std::string_view choices{};     // of a text, separated by blanks
  std::string_view aliases{};     // older names, separated by blanks
  bool is_extension = false;      // unknown to the original
};

// Those that every rule has: workers, exclude_regex, max_violations, compat.
std::span<const ParameterSpec> shared_parameters();

class Parameters final {
 public:
  // `given`: an object of names and values; null is an empty one. `rule` is for messages and for
  // the key "rule_to_invoke", which may name it. invalid_argument: an unknown name, with the
  // accepted ones and the nearest; a value of another type, out of range or no choice; one
  // parameter given under two names.
  static Result<Parameters> parse(std::string_view rule, std::span<const ParameterSpec> table,
                                  const Json& given);

  // Whether it has a value; "" and "None" are none.
  bool has(std::string_view name) const;
  // Whether somebody gave it, so that it is not just the default.
  bool is_given(std::string_view name) const;

  // Of a parameter that has a value; another type or name is a bug and ends the process. A real
  // parameter may be asked for as such only.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  // Empty without a value.
  const std::vector<std::string>& list(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;

  // All values by name, null where there is none; in the order of the table, shared ones only if
  // given.
  Json to_json() const;

 private:
  using Value = std::variant<std::monostate, int64_t, double, bool, std::string,
                             std::vector<std::string>, std::vector<double>>;
  struct Entry {
    std::string name;
    Value value;
    bool given = false;
    bool shared = false;
  };
  static Result<Value> parse_value(std::string_view rule, const ParameterSpec& spec,
                                   const Json& given);
  const Entry& entry(std::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace smd::rules
