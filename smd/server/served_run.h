#pragma once

// One run that is served: a trial, the thread that keeps it fresh, and what is known of it now.
// Thread-safe; only its own thread refreshes. The thread ends when the job has, or with the object.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/server/model.h"
#include "smd/server/verdict.h"
#include "smd/trial/trial.h"

namespace smd::server {

enum class RunState : uint8_t { waiting, running, silent, ended, gone, failed };
// "waiting".
std::string_view name_of(RunState state);

// What is known of a run at one moment. Immutable.
struct RunFacts {
  RunState state = RunState::waiting;
  std::string error;                         // of failed
  uint64_t revision = 0;                     // grows with every change of what follows
  uint64_t catalogue = 0;                    // grows with every change of the model
  std::shared_ptr<const Snapshot> snapshot;  // never null
  std::shared_ptr<const Model> model;        // never null
  std::optional<double> first_wall_secs;
  std::optional<double> last_wall_secs;
};

struct ServedRunOptions {
  std::string id;
  std::string name;      // for people
  std::string location;  // a path or a URI
  uint64_t first_revision = 1;
  std::shared_ptr<const Clock> clock = system_clock();
  // Called by the run's own thread after each change.
  std::function<void(const std::string& id)> changed{};
};

class ServedRun final {
 public:
  // An error tells of a location that cannot be one of a run.
  static Result<std::shared_ptr<ServedRun>> open(ServedRunOptions options);
  ~ServedRun();
  ServedRun(const ServedRun&) = delete;
  ServedRun& operator=(const ServedRun&) = delete;

  const std::string& id() const { return options_.id; }
  const std::string& name() const { return options_.name; }
  const std::string& location() const { return options_.location; }

  std::shared_ptr<const RunFacts> facts() const;
  const std::shared_ptr<Trial>& trial() const { return trial_; }

  // Reads what is there now, on the calling thread; before start() only.
  void load();
  // Follows the run from now on.
  void start();
  // The end of that; stop() waits for it.
  void ask_to_stop();
  void stop();
  // Its files are not there any more. Tells so and follows it no longer.
  void mark_gone();

  // What the rules say; nullptr: nothing yet.
  std::shared_ptr<const Verdict> verdict() const;
  void set_verdict(std::shared_ptr<const Verdict> verdict);
  // Somebody wants to know it.
  void want_verdict() const { wants_verdict_ = true; }
  bool wants_verdict() const { return wants_verdict_; }

  // Of the row of this global step in the snapshot, kept once it was read; NaN: not known.
  std::vector<double> wall_secs(const Snapshot& snapshot, const std::vector<uint32_t>& rows) const;
  // Of a tensor as it was first saved, kept once it was read; nullopt: only reductions tell of it.
  struct Form {
    std::optional<DType> dtype;
    std::optional<Shape> shape;
  };
  std::vector<Form> forms(const RunFacts& facts) const;

 private:
  ServedRun(ServedRunOptions options, std::shared_ptr<Trial> trial);

  void follow();
  // Refreshes and publishes; true if something changed.
  bool look();
  void publish(RunFacts facts);
  RunState state_of(const Snapshot& snapshot, bool is_news);
  // Whether the snapshot has something that the model of the last one has not.
  bool needs_model(const Snapshot& snapshot);
  // False when it is time to stop.
  bool sleep(std::chrono::milliseconds time);

  const ServedRunOptions options_;
  const std::shared_ptr<Trial> trial_;

  // --- of the thread that refreshes
  std::set<std::pair<uint32_t, Mode>> seen_layouts_;
  size_t seen_parts_ = 0;
  size_t seen_names_ = 0;
  uint64_t seen_collections_ = UINT64_MAX;
  double heard_secs_ = 0;  // when something new was last read, in Unix time

  mutable std::atomic<bool> wants_verdict_ = false;
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;                                   // guarded by mutex_
  std::shared_ptr<const RunFacts> facts_;               // guarded by mutex_
  std::shared_ptr<const Verdict> verdict_;              // guarded by mutex_
  mutable std::unordered_map<Step, double> wall_secs_;  // guarded by mutex_
  mutable std::unordered_map<uint32_t, Form> forms_;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace smd::server
