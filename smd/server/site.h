#pragma once

// Everything that is served, without HTTP: the runs, what rules say of them, comparisons, and the
// news about all of these. What routes answer from. Thread-safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/server/body_cache.h"
#include "smd/server/comparisons.h"
#include "smd/server/run_list.h"
#include "smd/server/statistic_cache.h"

namespace smd::server {

// Something new, for those who listen: the name of an event and its data.
struct News {
  std::string event;
  std::string run;  // its id, or that of the first of two; empty: of all runs
  Json data;
};

struct SiteOptions {
  // Directories and URIs.
  std::vector<std::string> locations;
  std::string version;     // of the program
  bool is_report = false;  // nothing is followed
  std::shared_ptr<const Clock> clock = system_clock();
};

class Site final {
 public:
  // Runs that are there by now are read. invalid_argument: of the locations.
  static Result<std::unique_ptr<Site>> open(SiteOptions options);
  ~Site();

  // Follows the runs from now on, and tells the news. Not for reports. `tell` may be called by any
  // thread, and must not wait.
  void start(std::function<void(const News&)> tell);
  // Follows nothing and tells nothing from now on; questions are still answered.
  void stop();

  const SiteOptions& options() const { return options_; }
  // A text that no other site has.
  const std::string& instance() const { return instance_; }
  const RunList& runs() const { return *runs_; }
  // not_found names the nearest.
  Result<std::shared_ptr<ServedRun>> run(std::string_view id) const;
  Comparisons& comparisons() const { return *comparisons_; }
  StatisticCache& statistics() const { return *statistics_; }
  BodyCache& bodies() const { return *bodies_; }

  // Somebody opens the page: the rules rest a moment, so that its first answers come at once.
  // However often this is called, they get most of the time.
  void make_room() const;
  // What listeners are told first.
  News hello() const;
  // The rules have seen all of the run when this returns. For reports.
  Status judge_now(ServedRun& run) const;

 private:
  explicit Site(SiteOptions options);

  void changed(const std::string& id);
  void judge();
  // Waits until the rules may go on. False: the site has stopped.
  bool wait_for_room();
  // True: there is more to do at once.
  bool judge(const std::shared_ptr<ServedRun>& run);
  void publish(ServedRun& run, Verdict verdict);

  const SiteOptions options_;
  const std::string instance_;
  std::function<void(const News&)> tell_;  // set before any thread runs
  std::unique_ptr<RunList> runs_;
  std::unique_ptr<Comparisons> comparisons_;
  std::unique_ptr<StatisticCache> statistics_;
  std::unique_ptr<BodyCache> bodies_;

  // --- of the thread that judges
  struct Case;
  std::map<const ServedRun*, std::unique_ptr<Case>> cases_;

  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;                                           // guarded by mutex_
  mutable std::chrono::steady_clock::time_point rest_until_{};  // guarded by mutex_
  std::thread judge_;
};

}  // namespace smd::server
