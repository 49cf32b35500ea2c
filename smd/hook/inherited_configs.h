#pragma once

// Remembers which collections have the save config of the hook because nobody gave them their own.
// A plan completes the configs of collections, after which they look alike. One thread at a time.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "smd/collection/collection_set.h"
#include "smd/config/save_config.h"

namespace smd {

class InheritedConfigs final {
 public:
  // Nobody asked for the config that the collection has now.
  void note(const Collection& collection) {
    if (collection.save_config()) {
      known_[collection.name()] = {collection.save_config(), *collection.save_config()};
    }
  }

  // It has none, or still the one that was noted, unchanged.
  bool holds(const Collection& collection) const {
    if (!collection.save_config()) return true;
    const auto noted = known_.find(collection.name());
    return noted != known_.end() && noted->second.first == collection.save_config() &&
           noted->second.second == *collection.save_config();
  }

 private:
  std::map<std::string, std::pair<std::shared_ptr<const SaveConfig>, SaveConfig>> known_;
};

}  // namespace smd
