#include "smd/hook/save_wish.h"

#include <algorithm>

namespace smd {
namespace {

constexpr int64_t kLongestWish = 1'000'000'000;

}  // namespace

Status give_patterns(const std::vector<SaveWish>& wishes, CollectionSet& collections) {
  for (const SaveWish& wish : wishes) {
    SMD_TRY(const auto collection, collections.create(wish.collection));
    if (!collection->empty()) continue;
    for (const std::string& pattern : wish.include_regex) {
      SMD_RETURN_IF_ERROR(collection->include(pattern));
    }
    for (const std::string& pattern : wish.exclude_regex) {
      SMD_RETURN_IF_ERROR(collection->exclude(pattern));
    }
  }
  return {};
}

void settle(std::vector<SaveWish>& wishes, const CollectionSet& collections,
            const SaveConfig& by_default, bool is_told) {
  for (SaveWish& wish : wishes) {
    if (wish.save_config) continue;
    const auto collection = collections.find(wish.collection);
    wish.save_config = by_default;
    if (collection && collection->save_config()) {
      wish.save_config = *collection->save_config();
      wish.save_config->merge_defaults(by_default);
    } else if (!is_told && wish.default_interval) {
      auto own = SaveConfig::broadcast({.save_interval = *wish.default_interval});
      if (own.ok()) wish.save_config = std::move(*own);
    }
  }
}

Result<SaveConfig> next_steps(Mode mode, Step first, int64_t count) {
  SaveConfig out;
  for (Mode other : kModes) {
    const Step end = other == mode ? first + std::clamp<int64_t>(count, 0, kLongestWish) : 0;
    SMD_RETURN_IF_ERROR(out.set_mode(
        other, SaveConfigMode{.save_interval = 1, .start_step = first, .end_step = end}));
  }
  return out;
}

}  // namespace smd
