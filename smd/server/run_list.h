#pragma once

// The runs that are served: those somebody named, and those that lie below a folder somebody named,
// which may come and go. A thread looks for them every other second. Thread-safe.

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
#include "smd/base/result.h"
#include "smd/server/served_run.h"

namespace smd::server {

struct RunListOptions {
  // Directories, which need not be there yet, and URIs.
  std::vector<std::string> locations;
  std::shared_ptr<const Clock> clock = system_clock();
  // Called by some thread after a run changed, or (with an empty id) after one came or went.
  std::function<void(const std::string& id)> changed{};
};

class RunList final {
 public:
  // Most runs below one folder; further ones are left out.
  static constexpr size_t kMostRuns = 256;

  // invalid_argument: a location that cannot be served.
  static Result<std::unique_ptr<RunList>> open(RunListOptions options);
  ~RunList();

  // By id.
  std::vector<std::shared_ptr<ServedRun>> runs() const;
  // nullptr: none.
  std::shared_ptr<ServedRun> find(std::string_view id) const;

  // Follows the runs and looks for others from now on. Without it they stay as they are.
  void start();
  // The end of that.
  void stop();

 private:
  struct Entry {
    std::shared_ptr<ServedRun> run;
    uint64_t device = 0;  // of the directory; 0: not a local one
    uint64_t inode = 0;
  };
  struct Place {
    std::string location;
    std::string name;
  };

  explicit RunList(RunListOptions options) : options_(std::move(options)) {}

  void watch();
  // True if a run came or went.
  bool look();
  std::vector<Place> places() const;
  Status add(const Place& place, uint64_t device, uint64_t inode);
  std::string id_of(const Place& place) const;

  const RunListOptions options_;
  bool is_started_ = false;  // of the thread that looks
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;                                // guarded by mutex_
  std::map<std::string, Entry, std::less<>> by_id_;  // guarded by mutex_
  std::map<std::string, std::string> ids_;           // by location, guarded by mutex_
  std::thread thread_;
};

// Letters, digits and "._-" of the text; the rest becomes '-'. Never empty.
std::string slug_of(std::string_view text);

}  // namespace smd::server
