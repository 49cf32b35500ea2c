#include "smd/collection/matcher.h"

#include <algorithm>
#include <utility>

#include "smd/base/result.h"

namespace smd {

Matcher::Matcher(std::vector<std::shared_ptr<Collection>> collections) {
  watched_.reserve(collections.size());
  for (auto& collection : collections) {
    SMD_CHECK(collection != nullptr);
    const uint64_t revision = collection->revision();
    watched_.push_back({std::move(collection), revision});
  }
}

bool Matcher::changed() const {
  return std::any_of(watched_.begin(), watched_.end(), [](const Watched& watched) {
    return watched.collection->revision() != watched.revision;
  });
}

void Matcher::forget() {
  for (Watched& watched : watched_) watched.revision = watched.collection->revision();
  known_.clear();
  by_collections_.clear();
  matches_.clear();
  ++generation_;
}

const NameMatch& Matcher::match(std::string_view name) {
  if (changed()) forget();
  const auto found = known_.find(name);
  return found != known_.end() ? *found->second : learn(name);
}

const NameMatch& Matcher::learn(std::string_view name) {
  std::vector<uint32_t> holders;
  for (uint32_t i = 0; i < watched_.size(); ++i) {
    const Watched& watched = watched_[i];
    const Membership membership = watched.collection->membership(name, &problems_);
    if (membership == Membership::none) continue;
    holders.push_back(i);
    if (membership == Membership::matched) watched.collection->add_matched_name(name);
  }
  const auto [entry, is_new] = by_collections_.emplace(holders, nullptr);
  if (is_new) {
    matches_.push_back({static_cast<uint32_t>(matches_.size()), std::move(holders)});
    entry->second = &matches_.back();
  }
  known_.emplace(name, entry->second);
  return *entry->second;
}

std::vector<std::string> Matcher::take_problems() { return std::exchange(problems_, {}); }

}  // namespace smd
