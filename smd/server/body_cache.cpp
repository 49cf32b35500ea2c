#include "smd/server/body_cache.h"

#include <algorithm>

namespace smd::server {
namespace {

constexpr size_t kMostEntries = 4096;

}  // namespace

Result<std::shared_ptr<const Body>> BodyCache::get(const Key& key, const std::string& version,
                                                   const std::function<Result<Body>()>& make) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    auto& found = entries_[key];
    if (!found || found->version != version) {
      if (found) bytes_ -= found->bytes;
      found = std::make_shared<Entry>(version);
    }
    entry = found;
    entry->used = ++clock_;
  }
  const std::lock_guard making(entry->making);
  if (entry->body) return entry->body;
  auto made = make();
  const std::lock_guard lock(mutex_);
  const auto held = entries_.find(key);
  const bool is_held = held != entries_.end() && held->second == entry;
  if (!made.ok()) {
    if (is_held) entries_.erase(held);
    return made.error();
  }
  entry->body = std::make_shared<const Body>(std::move(*made));
  if (!is_held) return entry->body;
  entry->bytes = key.run.size() + key.question.size() + entry->body->plain.size() +
                 entry->body->compressed.size();
  bytes_ += entry->bytes;
  while (entries_.size() > 1 && (bytes_ > most_bytes_ || entries_.size() > kMostEntries)) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      const bool is_older = oldest == entries_.end() || at->second->used < oldest->second->used;
      if (at->second != entry && is_older) oldest = at;
    }
    bytes_ -= oldest->second->bytes;
    entries_.erase(oldest);
  }
  return entry->body;
}

void BodyCache::keep(const std::set<std::string>& ids) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& one) {
    const bool is_gone = !one.first.run.empty() && !ids.contains(one.first.run);
    if (is_gone) bytes_ -= one.second->bytes;
    return is_gone;
  });
}

uint64_t BodyCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace smd::server
