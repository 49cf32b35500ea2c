#include "smd/collection/collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "smd/base/json.h"
#include "smd/collection/change_count.h"
#include "smd/config/json_value.h"

namespace smd {
namespace {

template <typename Patterns>
std::vector<std::string> texts_of(const Patterns& patterns) {
  std::vector<std::string> texts;
  texts.reserve(patterns.size());
  for (const auto& pattern : patterns) texts.push_back(pattern.text);
  return texts;
}

template <typename T>
bool same_value(const std::shared_ptr<T>& a, const std::shared_ptr<T>& b) {
  return a == b || (a && b && *a == *b);
}

template <typename T>
std::shared_ptr<T> copy_of(const std::shared_ptr<T>& object) {
  return object ? std::make_shared<T>(*object) : nullptr;
}

// Exactly the strings of a list, or one string alone: names and patterns are not trimmed or split.
Result<std::vector<std::string>> strings_of(const Json& object, std::string_view key,
                                            std::string_view place) {
  std::vector<std::string> strings;
  const Json* value = json_member(object, key);
  if (value == nullptr) return strings;
  const std::string path = fmt::format("{}.{}", place, key);
  if (!value->is_array()) {
    SMD_TRY(std::string text, json_string(*value, path));
    strings.push_back(std::move(text));
    return strings;
  }
  for (const Json& item : *value) {
    SMD_TRY(std::string text, json_string(item, path));
    strings.push_back(std::move(text));
  }
  return strings;
}

}  // namespace

Collection Collection::clone() const {
  Collection copy(name_);
  copy.include_ = include_;
  copy.exclude_ = exclude_;
  copy.names_ = names_;
  copy.save_config_ = copy_of(save_config_);
  copy.reduction_config_ = copy_of(reduction_config_);
  copy.save_histogram_ = save_histogram_;
  copy.revision_ = revision_;
  return copy;
}

Result<Collection::Patterns> Collection::compile(const std::vector<std::string>& patterns) {
  Patterns compiled;
  for (const std::string& text : patterns) {
    SMD_TRY(Pattern pattern, Pattern::compile(text));
    compiled.push_back({text, std::move(pattern)});
  }
  return compiled;
}

Status Collection::include(std::string_view pattern) {
  SMD_TRY(Pattern compiled, Pattern::compile(pattern));
  include_.push_back({std::string(pattern), std::move(compiled)});
  ++revision_;
  ChangeCount::grow();
  return {};
}

Status Collection::exclude(std::string_view pattern) {
  SMD_TRY(Pattern compiled, Pattern::compile(pattern));
  exclude_.push_back({std::string(pattern), std::move(compiled)});
  ++revision_;
  ChangeCount::grow();
  return {};
}

Status Collection::set_include_regex(const std::vector<std::string>& patterns) {
  SMD_TRY(include_, compile(patterns));
  ++revision_;
  ChangeCount::grow();
  return {};
}

Status Collection::set_exclude_regex(const std::vector<std::string>& patterns) {
  SMD_TRY(exclude_, compile(patterns));
  ++revision_;
  ChangeCount::grow();
  return {};
}

std::vector<std::string> Collection::include_regex() const { return texts_of(include_); }

std::vector<std::string> Collection::exclude_regex() const { return texts_of(exclude_); }

std::vector<std::string> Collection::tensor_names() const {
  std::vector<std::string> names;
  names.reserve(names_.size());
  for (const auto& [name, how] : names_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void Collection::set_tensor_names(const std::vector<std::string>& names) {
  names_.clear();
  for (const std::string& name : names) names_.emplace(name, Membership::listed);
  ++revision_;
  ChangeCount::grow();
}

void Collection::add_tensor_name(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end() && found->second == Membership::listed) return;
  names_.insert_or_assign(std::string(name), Membership::listed);
  ++revision_;
  ChangeCount::grow();
}

void Collection::add_matched_name(std::string_view name) {
  if (!has_tensor_name(name)) names_.emplace(name, Membership::matched);
}

bool Collection::remove_tensor_name(std::string_view name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  names_.erase(found);
  ++revision_;
  ChangeCount::grow();
  return true;
}

bool Collection::any_found(const Patterns& patterns, std::string_view name,
                           std::vector<std::string>* problems) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const NamePattern& pattern) {
    if (!pattern.compiled) return false;
    const auto found = pattern.compiled->search(name);
    if (!found.ok() && problems != nullptr) problems->push_back(found.error().message);
    return found.ok() && *found;
  });
}

Membership Collection::membership(std::string_view name, std::vector<std::string>* problems) const {
  const auto known = names_.find(name);
  if (known != names_.end() && known->second == Membership::listed) return Membership::listed;
  if (!any_found(include_, name, problems)) return Membership::none;
  return any_found(exclude_, name, problems) ? Membership::none : Membership::matched;
}

void Collection::set_save_config(std::shared_ptr<SaveConfig> config) {
  save_config_ = std::move(config);
  ++revision_;
  ChangeCount::grow();
}

void Collection::set_reduction_config(std::shared_ptr<ReductionConfig> config) {
  reduction_config_ = std::move(config);
  ++revision_;
  ChangeCount::grow();
}

void Collection::set_save_histogram(bool value) {
  save_histogram_ = value;
  ++revision_;
  ChangeCount::grow();
}

std::string Collection::to_json() const {
  std::string out;
  const auto add = [&](std::string_view key, const Json& value) {
    out += key;
    out += dump_json(value);
  };
  add("{\"name\": ", name_);
  add(", \"include_regex\": ", include_regex());
  out += ", \"tensor_names\": [";
  std::vector<std::string_view> names;
  names.reserve(names_.size());
  for (const auto& [name, how] : names_) names.push_back(name);
  std::sort(names.begin(), names.end());
  std::string_view separator;
  for (std::string_view name : names) {
    out += separator;
    append_json_string(out, name);
    separator = ", ";
  }
  add("], \"reduction_config\": ",
      reduction_config_ ? reduction_config_->to_json() : Json(nullptr));
  add(", \"save_config\": ", save_config_ ? save_config_->to_json() : Json(nullptr));
  add(", \"save_histogram\": ", save_histogram_);
  if (!exclude_.empty()) add(", \"exclude_regex\": ", exclude_regex());
  out += '}';
  return out;
}

Result<Collection> Collection::from_json(std::string name, const Json& json,
                                         std::vector<std::string>* warnings) {
  const std::string place = fmt::format("collections.{}", name);
  SMD_RETURN_IF_ERROR(check_keys(json, place, {}, UnknownKeys::ignore));
  Collection collection(std::move(name));
  auto add_all = [&](Patterns& patterns, std::vector<std::string> texts) {
    for (std::string& text : texts) {
      auto compiled = Pattern::compile(text);
      if (compiled.ok()) {
        patterns.push_back({std::move(text), std::move(*compiled)});
        continue;
      }
      if (warnings != nullptr) {
        warnings->push_back(fmt::format("{}: {}", place, compiled.error().message));
      }
      patterns.push_back({std::move(text), std::nullopt});
    }
  };
  SMD_TRY(auto include, strings_of(json, "include_regex", place));
  add_all(collection.include_, std::move(include));
  SMD_TRY(auto exclude, strings_of(json, "exclude_regex", place));
  add_all(collection.exclude_, std::move(exclude));
  SMD_TRY(const auto names, strings_of(json, "tensor_names", place));
  for (const std::string& tensor : names) collection.names_.emplace(tensor, Membership::listed);
  if (const Json* value = json_member(json, "reduction_config")) {
    SMD_TRY(auto config,
            ReductionConfig::from_json(*value, place + ".reduction_config", UnknownKeys::ignore));
    collection.reduction_config_ = std::make_shared<ReductionConfig>(std::move(config));
  }
  if (const Json* value = json_member(json, "save_config")) {
    SMD_TRY(auto config,
            SaveConfig::from_json(*value, place + ".save_config", UnknownKeys::ignore));
    collection.save_config_ = std::make_shared<SaveConfig>(std::move(config));
  }
  if (const Json* value = json_member(json, "save_histogram")) {
    SMD_TRY(collection.save_histogram_, json_bool(*value, place + ".save_histogram"));
  }
  return collection;
}

bool Collection::operator==(const Collection& other) const {
  auto is_theirs = [&](const auto& entry) { return other.has_tensor_name(entry.first); };
  return name_ == other.name_ && include_ == other.include_ && exclude_ == other.exclude_ &&
         names_.size() == other.names_.size() &&
         std::all_of(names_.begin(), names_.end(), is_theirs) &&
         same_value(save_config_, other.save_config_) &&
         same_value(reduction_config_, other.reduction_config_) &&
         save_histogram_ == other.save_histogram_;
}

}  // namespace smd
