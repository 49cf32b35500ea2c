#include "smd/rules/rule_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "smd/base/nearest.h"
#include "smd/rules/folded_name.h"

namespace smd::rules {

namespace builtin {
#define SMD_CATALOG_ENTRY(stem) extern const RuleKind stem;
#include "smd/rules/builtin_catalog.inc"
#undef SMD_CATALOG_ENTRY
}  // namespace builtin

namespace {

#define SMD_CATALOG_ENTRY(stem) &builtin::stem,
constexpr const RuleKind* kKinds[] = {
#include "smd/rules/builtin_catalog.inc"
};
#undef SMD_CATALOG_ENTRY

constexpr std::array<std::string_view, 4> kGroups = {"any framework", "deep learning",
                                                     "application", "trees"};

}  // namespace

std::string_view name_of(RuleGroup group) { return kGroups[static_cast<size_t>(group)]; }

std::span<const RuleKind* const> rule_kinds() { return kKinds; }

Result<const RuleKind*> find_rule(std::string_view name) {
  std::vector<std::string> known;
  for (const RuleKind* kind : kKinds) {
    if (folded_name(kind->name) == folded_name(name)) return kind;
    known.emplace_back(kind->name);
  }
  return Error{ErrorCode::not_found,
               fmt::format("There is no rule '{}'.{}", name, did_you_mean(name, known))};
}

std::string snake_name(const RuleKind& kind) {
  std::string out;
  for (size_t i = 0; i < kind.name.size(); ++i) {
    const char c = kind.name[i];
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    // "NLPSequenceRatio" is nlp_sequence_ratio: a run of capitals ends before a small letter.
    const bool after_small = i > 0 && std::islower(static_cast<unsigned char>(kind.name[i - 1]));
    const bool before_small =
        i + 1 < kind.name.size() && std::islower(static_cast<unsigned char>(kind.name[i + 1]));
    if (i > 0 && is_upper && (after_small || before_small)) out.push_back('_');
    out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

std::string docs_page(const RuleKind& kind) {
  return fmt::format("docs/reference/rules/{}.md", snake_name(kind));
}

}  // namespace smd::rules
