#pragma once

// Rules inside of the training process: asks a hook to save what they need, judges each step on the
// hook's writer thread, writes hits below the run, and hands them to whoever takes them. Training
// never waits for a taker, and no failure of a rule reaches it. Thread-safe.
//
//   SMD_TRY(auto watch, Watch::create({.rules = {{.rule = "VanishingGradient"}}}));
//   HookOptions options{…};
//   watch->attach(options);
//   SMD_TRY(auto hook, Hook::create(std::move(options)));

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "smd/base/json.h"
#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/hook/hook.h"
#include "smd/rules/runner.h"

namespace smd::watch {

struct WatchedRule {
  std::string rule{};
  // Instead of the name, for a rule that is not built in; must live as long as the watch.
  const rules::RuleKind* kind = nullptr;
  Json parameters = Json::object();
  // How often what it needs is saved; see needs_of().
  std::optional<int64_t> save_interval{};
};

struct WatchOptions {
  std::vector<WatchedRule> rules{};
  // Events that nobody took; when there are more, the oldest are dropped.
  size_t max_events = 4096;
};

// A hit, as it is written below the run.
struct WatchHit {
  size_t rule = 0;  // its place in WatchOptions::rules
  Json record;
};
// For the log: the writer thread writes none.
struct WatchMessage {
  LogLevel level = LogLevel::warning;
  std::string text;
};
using WatchEvent = std::variant<WatchHit, WatchMessage>;

class Watch final : public std::enable_shared_from_this<Watch> {
 public:
  // Errors as of Runner::add: the name of a rule, its parameters, nothing to look at.
  static Result<std::shared_ptr<Watch>> create(WatchOptions options);
  ~Watch();

  // What the rules need, and who judges. For one hook.
  void attach(HookOptions& options);

  // The next event; waits for it. nullopt: there was none in time, or the hook is closed.
  std::optional<WatchEvent> take(std::chrono::steady_clock::time_point deadline);
  // Nothing will come any more, and everything was taken.
  bool ended() const;
  // For a hook that could not be made.
  void end();

 private:
  class Judge;  // the output of the hook
  class EventLog;

  explicit Watch(WatchOptions options);
  void put(WatchEvent event);

  const WatchOptions options_;
  std::vector<SaveWish> wishes_;
  std::unique_ptr<Judge> judge_;  // until the hook takes it
  mutable std::mutex mutex_;      // guards everything below
  std::condition_variable changed_;
  std::deque<WatchEvent> events_;
  bool ended_ = false;
};

}  // namespace smd::watch
