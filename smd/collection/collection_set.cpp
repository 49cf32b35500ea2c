#include "smd/collection/collection_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "smd/base/json.h"
#include "smd/base/nearest.h"
#include "smd/collection/change_count.h"
#include "smd/config/json_value.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 2> kTopKeys = {"collections", "_meta"};

// Messages about a file end with its name.
Error located(const Error& error, std::string_view source) {
  if (source.empty()) return error;
  std::string message = error.message;
  if (!message.ends_with('.')) return {error.code, fmt::format("{} See {}.", message, source)};
  message.pop_back();
  return {error.code, fmt::format("{}, in {}.", message, source)};
}

}  // namespace

Result<std::shared_ptr<Collection>> CollectionSet::create(std::string_view name) {
  if (auto existing = find(name)) return existing;
  auto collection = std::make_shared<Collection>(std::string(name));
  SMD_RETURN_IF_ERROR(add(collection));
  return collection;
}

Result<std::shared_ptr<Collection>> CollectionSet::get(std::string_view name) const {
  if (auto existing = find(name)) return existing;
  return Error{ErrorCode::not_found,
               fmt::format("There is no collection '{}'.{}", name, did_you_mean(name, names()))};
}

std::shared_ptr<Collection> CollectionSet::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : collections_[found->second];
}

Status CollectionSet::add(std::shared_ptr<Collection> collection) {
  SMD_CHECK(collection != nullptr);
  if (collection->name().empty()) {
    return Error{ErrorCode::invalid_argument, "A collection has an empty name; give it one."};
  }
  const auto [entry, is_new] = index_.emplace(collection->name(), collections_.size());
  ++revision_;
  ChangeCount::grow();
  if (is_new) {
    collections_.push_back(std::move(collection));
  } else {
    auto& place = collections_[entry->second];
    revision_ += place->revision();  // the sum must not fall with the one that leaves
    place = std::move(collection);
  }
  return {};
}

std::vector<std::string> CollectionSet::names() const {
  std::vector<std::string> names;
  names.reserve(collections_.size());
  for (const auto& collection : collections_) names.push_back(collection->name());
  return names;
}

Status CollectionSet::set_num_workers(int64_t count) {
  if (count < 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("num_workers is {}; it must be at least 1.", count)};
  }
  num_workers_ = count;
  ++revision_;
  ChangeCount::grow();
  return {};
}

uint64_t CollectionSet::revision() const {
  return std::accumulate(collections_.begin(), collections_.end(), revision_,
                         [](uint64_t sum, const auto& c) { return sum + c->revision(); });
}

size_t CollectionSet::name_count() const {
  size_t count = 0;
  for (const auto& collection : collections_) count += collection->name_count();
  return count;
}

std::string CollectionSet::to_json() const {
  std::string out = "{\"collections\": {";
  std::string_view separator;
  for (const auto& collection : collections_) {
    out += separator;
    append_json_string(out, collection->name());
    out += ": ";
    out += collection->to_json();
    separator = ", ";
  }
  out += "}, \"_meta\": ";
  out += dump_json({{"num_workers", num_workers_}});
  out += '}';
  return out;
}

Result<CollectionSet> CollectionSet::from_json(std::string_view text, std::string_view source,
                                               std::vector<std::string>* warnings) {
  SMD_TRY(const Json json, parse_json(text, source));
  auto checked = [source](Status status) -> Status {
    return status.ok() ? status : Status(located(status.error(), source));
  };
  SMD_RETURN_IF_ERROR(
      checked(check_keys(json, "the collections file", kTopKeys, UnknownKeys::refuse)));
  CollectionSet set;
  if (const Json* collections = json_member(json, "collections")) {
    SMD_RETURN_IF_ERROR(checked(check_keys(*collections, "collections", {}, UnknownKeys::ignore)));
    for (const auto& [name, value] : collections->items()) {
      auto collection = Collection::from_json(name, value, warnings);
      if (!collection.ok()) return located(collection.error(), source);
      SMD_RETURN_IF_ERROR(checked(set.add(std::make_shared<Collection>(std::move(*collection)))));
    }
  }
  if (const Json* meta = json_member(json, "_meta")) {
    SMD_RETURN_IF_ERROR(checked(check_keys(*meta, "_meta", {}, UnknownKeys::ignore)));
    if (const Json* count = json_member(*meta, "num_workers")) {
      const auto number = json_int(*count, "_meta.num_workers");
      if (!number.ok()) return located(number.error(), source);
      SMD_RETURN_IF_ERROR(checked(set.set_num_workers(*number)));
    }
  }
  return set;
}

bool CollectionSet::operator==(const CollectionSet& other) const {
  return size() == other.size() &&
         std::all_of(collections_.begin(), collections_.end(), [&](const auto& mine) {
           const auto theirs = other.find(mine->name());
           return theirs != nullptr && *theirs == *mine;
         });
}

}  // namespace smd
