#pragma once

// Comparisons of two runs, which read everything that both hold: made one after the other by a
// thread of their own, and kept for those who ask again. Thread-safe.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/server/served_run.h"
#include "smd/trial/diff.h"

namespace smd::server {

struct ComparisonKey {
  std::string a;  // ids
  std::string b;
  uint64_t revision_a = 0;
  uint64_t revision_b = 0;
  Mode mode = Mode::global;
  Tolerance tolerance;

  bool operator==(const ComparisonKey& other) const {
    return a == other.a && b == other.b && revision_a == other.revision_a &&
           revision_b == other.revision_b && mode == other.mode &&
           tolerance.absolute == other.tolerance.absolute &&
           tolerance.relative == other.tolerance.relative;
  }
};

struct Comparison {
  enum class State : uint8_t { pending, ready, failed };

  State state = State::pending;
  uint64_t revision_a = 0;  // what is compared
  uint64_t revision_b = 0;
  int64_t done_steps = 0;
  int64_t total_steps = 0;
  std::string error;
  std::shared_ptr<const Diff> diff;  // of a ready one
};

class Comparisons final {
 public:
  // Called by the thread when a comparison is ready or failed.
  explicit Comparisons(std::function<void(const ComparisonKey&, Comparison::State)> told);
  ~Comparisons();
  // Breaks off what is under way; nothing is begun any more.
  void stop();

  // How far it is; begins it if nobody asked for it before. While it is pending, one of older
  // revisions is of no use. `closed` (503): too many are waiting.
  Result<Comparison> ask(const ComparisonKey& key, const std::shared_ptr<ServedRun>& a,
                         const std::shared_ptr<ServedRun>& b);
  // The same at once, on the calling thread.
  static Result<Diff> compare(const ComparisonKey& key, ServedRun& a, ServedRun& b,
                              const std::function<bool(int64_t, int64_t)>& progress);

 private:
  struct Job {
    ComparisonKey key;
    std::shared_ptr<ServedRun> a;
    std::shared_ptr<ServedRun> b;
    Comparison comparison;
  };

  void work();

  const std::function<void(const ComparisonKey&, Comparison::State)> told_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;                     // guarded by mutex_
  std::list<std::shared_ptr<Job>> jobs_;  // newest first, guarded by mutex_ with what they hold
  std::thread thread_;
};

}  // namespace smd::server
