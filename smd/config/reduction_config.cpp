#include "smd/config/reduction_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "smd/base/json.h"
#include "smd/base/nearest.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 4> kReductionConfigKeys = {"save_raw_tensor", "reductions",
                                                                  "save_shape", "extra_reductions"};

// The kinds that every reader of a collections file knows.
constexpr std::array<std::string_view, 9> kUniversal = {"min", "max",  "mean", "std", "variance",
                                                        "sum", "prod", "l1",   "l2"};

bool is_universal(Reduction reduction) {
  return std::find(kUniversal.begin(), kUniversal.end(), reduction.op()) != kUniversal.end();
}

// One of the four lists: which kinds it takes and what is done to the values first.
struct ListRule {
  std::string_view name;
  bool norms;
  bool abs;
};

Status add_names(ReductionConfig& config, const std::vector<std::string>& names, ListRule rule) {
  std::vector<std::string> allowed;
  for (const ReductionKind* kind : reduction_kinds()) {
    if (kind->is_norm == rule.norms) allowed.emplace_back(kind->name);
  }
  for (const std::string& list : names) {
    for (const std::string& name : split_list(list)) {
      const auto parsed = parse_reduction(name);
      if (!parsed.ok() || parsed->abs() || parsed->kind().is_norm != rule.norms) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("'{}' cannot stand in {}; expected one of {}.{}", name, rule.name,
                                 fmt::join(allowed, ", "), did_you_mean(name, allowed))};
      }
      config.add(Reduction::from_id(static_cast<uint8_t>(parsed->id() | (rule.abs ? 16 : 0))));
    }
  }
  return {};
}

}  // namespace

ReductionConfig ReductionConfig::raw_only() {
  ReductionConfig config;
  config.save_raw_tensor_ = true;
  return config;
}

Result<ReductionConfig> ReductionConfig::create(const ReductionConfigOptions& options) {
  ReductionConfig config;
  config.save_raw_tensor_ = options.save_raw_tensor;
  config.save_shape_ = options.save_shape;
  SMD_RETURN_IF_ERROR(add_names(config, options.reductions, {"reductions", false, false}));
  SMD_RETURN_IF_ERROR(add_names(config, options.abs_reductions, {"abs_reductions", false, true}));
  SMD_RETURN_IF_ERROR(add_names(config, options.norms, {"norms", true, false}));
  SMD_RETURN_IF_ERROR(add_names(config, options.abs_norms, {"abs_norms", true, true}));
  return config;
}

void ReductionConfig::add(Reduction reduction) {
  auto& list = reduction.kind().is_norm ? (reduction.abs() ? abs_norms_ : norms_)
                                        : (reduction.abs() ? abs_reductions_ : reductions_);
  if (std::find(list.begin(), list.end(), reduction) == list.end()) list.push_back(reduction);
}

ReductionSet ReductionConfig::set() const {
  ReductionSet set;
  for (const auto* list : {&reductions_, &norms_, &abs_reductions_, &abs_norms_}) {
    for (Reduction reduction : *list) set.add(reduction);
  }
  return set;
}

Json ReductionConfig::to_json() const {
  std::vector<std::string> universal;
  std::vector<std::string> extra;
  for (const auto* list : {&reductions_, &norms_, &abs_reductions_, &abs_norms_}) {
    for (Reduction reduction : *list) {
      (is_universal(reduction) ? universal : extra).push_back(reduction.config_name());
    }
  }
  Json json = {{"save_raw_tensor", save_raw_tensor_},
               {"reductions", fmt::format("{}", fmt::join(universal, ","))},
               {"save_shape", save_shape_}};
  if (!extra.empty()) json["extra_reductions"] = fmt::format("{}", fmt::join(extra, ","));
  return json;
}

Result<ReductionConfig> ReductionConfig::from_json(const Json& json, std::string_view key,
                                                   UnknownKeys unknown) {
  SMD_RETURN_IF_ERROR(check_keys(json, key, kReductionConfigKeys, unknown));
  ReductionConfig config;
  for (std::string_view list : {"reductions", "extra_reductions"}) {
    const Json* value = json_member(json, list);
    if (value == nullptr) continue;
    const std::string path = fmt::format("{}.{}", key, list);
    SMD_TRY(const auto names, json_list(*value, path));
    SMD_TRY(const auto reductions, parse_reductions(names, path));
    for (Reduction reduction : reductions) config.add(reduction);
  }
  if (const Json* value = json_member(json, "save_raw_tensor")) {
    SMD_TRY(config.save_raw_tensor_, json_bool(*value, fmt::format("{}.save_raw_tensor", key)));
  }
  if (const Json* value = json_member(json, "save_shape")) {
    SMD_TRY(config.save_shape_, json_bool(*value, fmt::format("{}.save_shape", key)));
  }
  return config;
}

Result<std::vector<Reduction>> parse_reductions(const std::vector<std::string>& names,
                                                std::string_view key) {
  std::vector<Reduction> reductions;
  for (const std::string& name : names) {
    const auto parsed = parse_reduction(name);
    if (!parsed.ok()) {
      return Error{parsed.error().code, fmt::format("{}: {}", key, parsed.error().message)};
    }
    reductions.push_back(*parsed);
  }
  return reductions;
}

}  // namespace smd
