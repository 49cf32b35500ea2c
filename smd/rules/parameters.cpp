#include "smd/rules/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "smd/base/nearest.h"
#include "smd/rules/folded_name.h"

namespace smd::rules {
namespace {

constexpr std::string_view kRuleToInvoke = "rule_to_invoke";

constexpr ParameterSpec kShared[] = {
    {.name = "workers",
     .type = ParameterType::text,
     .default_text = "first",
     .help = "Whose tensors are judged: 'first' (of those that saved it), 'all', or a worker's "
             "name.",
     .is_extension = true},
    {.name = "exclude_regex",
     .type = ParameterType::list,
     .default_text = "",
     .help = "Tensors in whose names one of these patterns is found are left out.",
     .is_extension = true},
    {.name = "max_violations",
     .type = ParameterType::integer,
     .default_text = "32",
     .help = "How many tensors of one step are listed; all are counted.",
     .range = "[1,]",
     .is_extension = true},
    {.name = "compat",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Follow the original's text to the letter where this rule deviates on purpose.",
     .is_extension = true},
};

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(separator);
    const std::string_view item = trimmed(text.substr(0, end));
    if (!item.empty()) out.push_back(item);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double out = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size()) return std::nullopt;
  return out;
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "true" || lower == "1" || lower == "yes") return true;
  if (lower == "false" || lower == "0" || lower == "no") return false;
  return std::nullopt;
}

// "(0,100)": open at both ends; "[1,]": from 1 on.
bool in_range(std::string_view range, double number) {
  if (range.empty()) return true;
  const auto ends = range.substr(1, range.size() - 2);
  const auto comma = ends.find(',');
  const auto low = parse_real(ends.substr(0, comma));
  const auto high = parse_real(ends.substr(comma + 1));
  if (std::isnan(number)) return false;
  if (low && (range.front() == '(' ? number <= *low : number < *low)) return false;
  if (high && (range.back() == ')' ? number >= *high : number > *high)) return false;
  return true;
}

std::string range_words(std::string_view range) {
  const auto ends = range.substr(1, range.size() - 2);
  const auto comma = ends.find(',');
  const auto low = ends.substr(0, comma);
  const auto high = ends.substr(comma + 1);
  std::vector<std::string> words;
  if (!low.empty())
    words.push_back(fmt::format("{} {}", range.front() == '(' ? "above" : "at least", low));
  if (!high.empty())
    words.push_back(fmt::format("{} {}", range.back() == ')' ? "below" : "at most", high));
  return fmt::format("{}", fmt::join(words, " and "));
}

// A value of JSON as somebody would have written it.
std::string text_of(const Json& given) {
  if (given.is_string()) return given.get<std::string>();
  if (given.is_boolean()) return given.get<bool>() ? "true" : "false";
  return dump_json(given);
}

bool means_nothing(const Json& given) {
  if (given.is_null()) return true;
  if (!given.is_string()) return false;
  const std::string_view text = trimmed(given.get_ref<const std::string&>());
  return text.empty() || text == "None";
}

Error wrong(std::string_view rule, const ParameterSpec& spec, std::string_view value,
            std::string_view expected) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} of {} is '{}'; it must be {}.", spec.name, rule, value, expected)};
}

Status check_range(std::string_view rule, const ParameterSpec& spec, double number,
                   std::string_view text) {
  if (in_range(spec.range, number)) return {};
  return wrong(rule, spec, text, range_words(spec.range));
}

}  // namespace

std::string_view name_of(ParameterType type) {
  switch (type) {
    case ParameterType::integer: return "int";
    case ParameterType::real: return "float";
    case ParameterType::boolean: return "bool";
    case ParameterType::text: return "str";
    case ParameterType::list: return "list of str";
    case ParameterType::number_list: return "list of float";
  }
  return "";
}

std::span<const ParameterSpec> shared_parameters() { return kShared; }

Result<Parameters::Value> Parameters::parse_value(std::string_view rule, const ParameterSpec& spec,
                                                  const Json& given) {
  if (means_nothing(given)) return Value();
  std::vector<std::string> items;
  if (given.is_array()) {
    for (const Json& item : given) items.emplace_back(trimmed(text_of(item)));
  }
  const std::string whole = text_of(given);
  const std::string_view text = trimmed(whole);
  const bool is_list = spec.type == ParameterType::list || spec.type == ParameterType::number_list;
  if (given.is_object() || (given.is_array() && !is_list)) {
    return wrong(rule, spec, whole, fmt::format("of type {}", name_of(spec.type)));
  }
  if (is_list && !given.is_array()) {
    for (std::string_view item : split(text, ',')) items.emplace_back(item);
  }
  switch (spec.type) {
    case ParameterType::integer: {
      auto number = parse_integer(text);
      if (!number && given.is_number_float()) {
        const double real = given.get<double>();
        if (std::nearbyint(real) == real && std::fabs(real) < 9e15) {
          number = static_cast<int64_t>(real);
        }
      }
      if (!number || given.is_boolean()) return wrong(rule, spec, whole, "a whole number");
      SMD_RETURN_IF_ERROR(check_range(rule, spec, static_cast<double>(*number), text));
      return Value(*number);
    }
    case ParameterType::real: {
      const auto number = given.is_number() ? given.get<double>() : parse_real(text);
      if (!number || given.is_boolean()) return wrong(rule, spec, whole, "a number");
      SMD_RETURN_IF_ERROR(check_range(rule, spec, *number, text));
      return Value(*number);
    }
    case ParameterType::boolean: {
      const auto truth = parse_boolean(text);
      if (!truth) return wrong(rule, spec, whole, "true or false");
      return Value(*truth);
    }
    case ParameterType::text: {
      const auto choices = split(spec.choices, ' ');
      if (!choices.empty() && std::ranges::find(choices, text) == choices.end()) {
        return wrong(rule, spec, whole, fmt::format("one of {}", fmt::join(choices, ", ")));
      }
      return Value(std::string(text));
    }
    case ParameterType::list:
      std::erase(items, "");
      return items.empty() ? Value() : Value(std::move(items));
    case ParameterType::number_list: {
      std::vector<double> numbers;
      for (const std::string& item : items) {
        const auto number = parse_real(item);
        if (!number) return wrong(rule, spec, item, "a list of numbers");
        SMD_RETURN_IF_ERROR(check_range(rule, spec, *number, item));
        numbers.push_back(*number);
      }
      return numbers.empty() ? Value() : Value(std::move(numbers));
    }
  }
  return Value();
}

Result<Parameters> Parameters::parse(std::string_view rule, std::span<const ParameterSpec> table,
                                     const Json& given) {
  if (!given.is_null() && !given.is_object()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The parameters of {} must be an object of names and values, not {}.",
                             rule, dump_json(given))};
  }
  std::vector<const ParameterSpec*> specs;
  for (const ParameterSpec& spec : table) specs.push_back(&spec);
  const size_t own = specs.size();
  for (const ParameterSpec& spec : kShared) {
    const bool replaced =
        std::ranges::any_of(table, [&](const auto& mine) { return mine.name == spec.name; });
    if (!replaced) specs.push_back(&spec);
  }

  Parameters out;
  for (size_t i = 0; i < specs.size(); ++i) {
    const ParameterSpec& spec = *specs[i];
    SMD_TRY(Value value, parse_value(rule, spec, Json(std::string(spec.default_text))));
    out.entries_.push_back(
        {.name = std::string(spec.name), .value = std::move(value), .shared = i >= own});
  }
  for (const auto& [key, value] : given.items()) {
    const std::string name(trimmed(key));
    if (name == kRuleToInvoke) {
      if (value.is_string() && folded_name(value.get<std::string>()) == folded_name(rule)) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} is '{}' in parameters of {}.", name, text_of(value), rule)};
    }
    const auto at = std::ranges::find_if(specs, [&](const ParameterSpec* spec) {
      const auto aliases = split(spec->aliases, ' ');
      return spec->name == name || std::ranges::find(aliases, name) != aliases.end();
    });
    if (at == specs.end()) {
      std::vector<std::string> known;
      for (const ParameterSpec* spec : specs) known.emplace_back(spec->name);
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} has no parameter '{}'; it has {}.{}", rule, name,
                               fmt::join(known, ", "), did_you_mean(name, known))};
    }
    Entry& entry = out.entries_[static_cast<size_t>(at - specs.begin())];
    if (entry.given) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} of {} is given twice, once as '{}'.", entry.name, rule, name)};
    }
    // Nothing given means the default, so that an empty selector is the rule's own.
    if (means_nothing(value)) continue;
    SMD_TRY(entry.value, parse_value(rule, **at, value));
    entry.given = true;
  }
  return out;
}

const Parameters::Entry& Parameters::entry(std::string_view name) const {
  const auto at = std::ranges::find(entries_, name, &Entry::name);
  SMD_CHECK(at != entries_.end());
  return *at;
}

bool Parameters::has(std::string_view name) const {
  return !std::holds_alternative<std::monostate>(entry(name).value);
}

bool Parameters::is_given(std::string_view name) const { return entry(name).given; }

int64_t Parameters::integer(std::string_view name) const {
  const auto* held = std::get_if<int64_t>(&entry(name).value);
  SMD_CHECK(held != nullptr);
  return *held;
}

double Parameters::real(std::string_view name) const {
  const auto* held = std::get_if<double>(&entry(name).value);
  SMD_CHECK(held != nullptr);
  return *held;
}

bool Parameters::boolean(std::string_view name) const {
  const auto* held = std::get_if<bool>(&entry(name).value);
  SMD_CHECK(held != nullptr);
  return *held;
}

const std::string& Parameters::text(std::string_view name) const {
  const auto* held = std::get_if<std::string>(&entry(name).value);
  SMD_CHECK(held != nullptr);
  return *held;
}

const std::vector<std::string>& Parameters::list(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto* held = std::get_if<std::vector<std::string>>(&entry(name).value);
  return held != nullptr ? *held : none;
}

const std::vector<double>& Parameters::numbers(std::string_view name) const {
  static const std::vector<double> none;
  const auto* held = std::get_if<std::vector<double>>(&entry(name).value);
  return held != nullptr ? *held : none;
}

Json Parameters::to_json() const {
  Json out = Json::object();
  for (const Entry& one : entries_) {
    if (one.shared && !one.given) continue;
    out[one.name] = std::visit(
        [](const auto& value) -> Json {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
            return nullptr;
          } else {
            return value;
          }
        },
        one.value);
  }
  return out;
}

}  // namespace smd::rules
