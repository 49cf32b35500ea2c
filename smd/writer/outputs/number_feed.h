#pragma once

// The numbers of saved steps for somebody in this process who takes them on a thread of his own.
// Nobody waits for the taker: when he is too slow, the oldest steps are dropped and counted.
// Thread-safe.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "smd/writer/output.h"

namespace smd {

struct NumberFeedOptions {
  // Names of the reductions that are wanted, such as "mean" and "abs_l2".
  std::vector<std::string> reductions;
  size_t max_steps = 1024;
};

struct FedReduction {
  std::string tensor;
  std::string reduction;
  double value = 0;

  bool operator==(const FedReduction&) const = default;
};

struct FedStep {
  StepInfo step;
  std::string worker;
  double wall_secs = 0;  // of its first number
  std::vector<std::pair<std::string, double>> scalars;
  std::vector<FedReduction> reductions;

  bool operator==(const FedStep&) const = default;
};

class NumberFeed final {
 public:
  explicit NumberFeed(NumberFeedOptions options) : options_(std::move(options)) {}

  // The next step; waits for it. nullopt: there was none in time, or the feed has ended.
  std::optional<FedStep> take(std::chrono::steady_clock::time_point deadline);
  // Nothing will come any more, and everything was taken.
  bool ended() const;
  int64_t dropped_steps() const;

  bool wants(std::string_view reduction) const;
  void put(FedStep step);
  void end();

 private:
  const NumberFeedOptions options_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<FedStep> steps_;
  int64_t dropped_steps_ = 0;
  bool ended_ = false;
};

// Feeds it, and ends it when the writer closes.
std::unique_ptr<Output> feed_output(std::shared_ptr<NumberFeed> feed, std::string worker);

}  // namespace smd
