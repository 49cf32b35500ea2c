#pragma once

// Which hits of a followed run are worth a line: a rule may be met at every step for days. A hit is
// news when its rule names a tensor or a worker for the first time, and at its first, tenth,
// hundredth, … hit. One thread at a time.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "smd/rules/hit.h"

namespace smd::rules {

class HitNews final {
 public:
  // To be asked of every hit once, in their order.
  bool is_news(const Hit& hit);

 private:
  struct Known {
    uint64_t hits = 0;
    uint64_t next_told = 1;
    std::unordered_set<uint32_t> tensors;
    std::unordered_set<uint32_t> workers;
  };
  std::map<std::string, Known, std::less<>> by_rule_;
};

}  // namespace smd::rules
