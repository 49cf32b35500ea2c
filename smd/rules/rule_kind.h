#pragma once

// Which rules exist. Each lives in one file of builtin/, named like its constant; the build
// collects them, so adding a file adds a rule. Help, documentation, findings and the Python classes
// come from the same constants. Immutable table, thread-safe.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "smd/rules/rule.h"

namespace smd::rules {

// Where a rule makes sense; nobody enforces it.
enum class RuleGroup : uint8_t { any_framework, deep_learning, application, trees };
// "any framework", "deep learning", "application", "trees".
std::string_view name_of(RuleGroup group);

// A collection that the rule asks to be saved, with its parameters as a configuration file has
// them.
struct CollectionRequest {
  struct Setting {
    std::string_view name;
    std::string_view value;
  };
  std::string_view collection;
  std::span<const Setting> settings{};
};

// Everything about one rule that does not depend on a run.
struct RuleKind {
  std::string_view name;  // "VanishingGradient"
  RuleGroup group = RuleGroup::any_framework;
  Severity severity = Severity::warning;
  std::string_view summary;  // what it finds, in one sentence
  std::string_view sees;     // what it looks at and when it fires
  std::string_view why;      // why that matters
  std::string_view fix;      // what people can do about it
  std::span<const ParameterSpec> parameters{};
  std::span<const CollectionRequest> collections{};
  // It leaves files behind, so nobody evaluates it without being asked for it.
  bool writes_files = false;
  // Its definition also fits healthy runs. Where nobody asked for it by name or gave it parameters,
  // what it finds is information, and other rules give the alarm.
  bool is_hint_unasked = false;
  // invalid_argument: values that contradict each other. not_found: the parameters do not say what
  // to look at (Python: InsufficientInformationForRuleInvocation).
  Result<std::unique_ptr<Rule>> (*create)(const Parameters& parameters,
                                          const RuleContext& context) = nullptr;
};

// All rules, by name.
std::span<const RuleKind* const> rule_kinds();

// Case and underscores do not matter. not_found names the nearest.
Result<const RuleKind*> find_rule(std::string_view name);

// "vanishing_gradient": of the file, the constant and the Python constructor.
std::string snake_name(const RuleKind& kind);
// The page that describes it.
std::string docs_page(const RuleKind& kind);

}  // namespace smd::rules
