#include "smd/reduce/reduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "smd/base/nearest.h"

namespace smd {

namespace reductions {
#define SMD_CATALOG_ENTRY(stem) extern const ReductionKind stem;
#include "smd/reduce/kinds_catalog.inc"
#undef SMD_CATALOG_ENTRY
}  // namespace reductions

namespace {

#define SMD_CATALOG_ENTRY(stem) &reductions::stem,
constexpr const ReductionKind* kKinds[] = {
#include "smd/reduce/kinds_catalog.inc"
};
#undef SMD_CATALOG_ENTRY
static_assert(std::size(kKinds) <= 16, "a reduction id has four bits for its kind");

constexpr std::string_view kAbs = "abs_";
constexpr std::string_view kNorm = "_norm";

}  // namespace

std::span<const ReductionKind* const> reduction_kinds() { return kKinds; }

std::string Reduction::name() const {
  return fmt::format("{}{}", abs() ? kAbs : std::string_view(), op());
}

std::string Reduction::config_name() const {
  return fmt::format("{}{}", name(), kind().is_norm ? kNorm : std::string_view());
}

Result<Reduction> parse_reduction(std::string_view name) {
  std::string_view rest = name;
  const bool abs = rest.starts_with(kAbs);
  if (abs) rest.remove_prefix(kAbs.size());
  std::vector<std::string> known;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    const ReductionKind& kind = *kKinds[i];
    std::string_view op = rest;
    if (kind.is_norm && op.ends_with(kNorm)) op.remove_suffix(kNorm.size());
    if (op == kind.name) return Reduction(static_cast<uint8_t>(i), abs);
    known.emplace_back(kind.name);
    known.push_back(fmt::format("{}{}", kAbs, kind.name));
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is not a reduction; expected one of {}.{}", name,
                           fmt::join(known, ", "), did_you_mean(name, known))};
}

ReductionSet all_reductions() {
  ReductionSet set;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    set.add({static_cast<uint8_t>(i), false});
    set.add({static_cast<uint8_t>(i), true});
  }
  return set;
}

}  // namespace smd
