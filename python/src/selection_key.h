#pragma once

// What tells the steps of a hook apart that may save different tensors. The GIL is held.

#include <cstdint>
#include <vector>

#include "smd/hook/hook.h"

namespace smdebug {

// Differs when other collections are active, or when any of them has changed.
using SelectionKey = std::vector<uint64_t>;

inline void read_selection_key(const smd::Hook& hook, SelectionKey& key) {
  key.clear();
  uint64_t revisions = 0;
  for (const auto& collection : hook.shared_collections()->collections()) {
    revisions += collection->revision();
    if (!hook.is_collection_observed(collection->name())) continue;
    key.push_back(reinterpret_cast<uintptr_t>(collection.get()));
    key.push_back(collection->revision());
  }
  key.push_back(revisions);
}

}  // namespace smdebug
