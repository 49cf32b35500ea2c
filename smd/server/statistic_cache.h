#pragma once

// Tables of statistics that were read lately: many questions are about the same one, and of a run
// that grows only what is new is read. Bounded by bytes. Thread-safe; a table is read by one thread
// while others who want the same one wait.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "smd/base/result.h"
#include "smd/server/number_table.h"
#include "smd/server/served_run.h"
#include "smd/server/statistic.h"

namespace smd::server {

class StatisticCache final {
 public:
  explicit StatisticCache(uint64_t most_bytes = uint64_t{512} << 20) : most_bytes_(most_bytes) {}

  // Of all tensors that have the statistic and of all steps of the mode, if nothing has to be
  // computed for it; else of `tensors` and `range` only. Errors as of Statistic::read().
  Result<std::shared_ptr<const NumberTable>> table(const ServedRun& run, const RunFacts& facts,
                                                   const Statistic& statistic,
                                                   const Statistic::Query& query,
                                                   const std::vector<uint32_t>& tensors);
  // Forgets the tables of runs that are not there any more.
  void keep(const std::set<std::string>& ids);

 private:
  struct Entry {
    std::mutex reading;
    // --- guarded by `reading`
    std::shared_ptr<const NumberTable> table;
    uint64_t revision = 0;
    uint64_t catalogue = 0;
    Step stable_end = 0;  // steps before it do not change any more
    // --- guarded by the mutex of the cache
    uint64_t used = 0;
    uint64_t bytes = 0;
  };

  std::shared_ptr<Entry> entry(const std::string& key);
  void account(const std::string& key, uint64_t bytes);

  const uint64_t most_bytes_;
  std::mutex mutex_;
  // By the id of the run, a line break and what is asked for; guarded by mutex_.
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  uint64_t clock_ = 0;  // guarded by mutex_
};

}  // namespace smd::server
