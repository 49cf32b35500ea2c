#include "smd/watch/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

#include "smd/rules/finding_log.h"
#include "smd/watch/findings_file.h"
#include "smd/watch/needs.h"
#include "smd/watch/step_feed.h"

namespace smd::watch {

// What rules have to say besides hits.
class Watch::EventLog final : public Log {
 public:
  explicit EventLog(Watch& watch) : watch_(watch) {}
  void write(LogLevel level, std::string_view message) override {
    watch_.put(WatchMessage{.level = level, .text = std::string(message)});
  }

 private:
  Watch& watch_;
};

class Watch::Judge final : public Output {
 public:
  explicit Judge(Watch& watch)
      : watch_(watch),
        runner_({.on_fire = rules::OnFire::keep_going,
                 .context = {.log = std::make_shared<EventLog>(watch)},
                 .on_hit = [this](const rules::Evaluation& evaluation, const rules::Hit& hit) {
                   on_hit(evaluation, hit);
                 }}) {}
  ~Judge() override {
    if (owner_) owner_->end();
  }

  rules::Runner& runner() { return runner_; }

  // The hook owns it from now on, and it keeps the watch.
  void start(std::shared_ptr<Watch> owner, const OutputPlace& place) {
    owner_ = std::move(owner);
    feed_.emplace(runner_, StepFeedOptions{.run = place.run, .worker = place.worker});
    file_.emplace(place.storage, place.worker);
    worker_ = place.worker;
    const auto now = std::chrono::steady_clock::now();
    plan_tick(now);
    progress_.newest_secs = secs_of(now);
  }

  Status scalar(const StepInfo& step, const SavedScalar&) override {
    step_ = step;
    return {};
  }
  Status membership(const StepInfo& step, const SavedMembership& saved) override {
    step_ = step;
    return guarded([&] { feed_->membership(saved); });
  }
  Status reductions(const StepInfo& step, const SavedReductions& saved) override {
    step_ = step;
    return guarded([&] { feed_->reductions(step, saved); });
  }
  Status shape(const StepInfo& step, const SavedShape& saved) override {
    return guarded([&] { feed_->shape(step, saved); });
  }
  Status strings(const StepInfo& step, const SavedStrings& saved) override {
    return guarded([&] { feed_->strings(step, saved); });
  }
  bool wants_tensor(std::string_view name) override {
    bool wanted = false;
    (void)guarded([&] { wanted = feed_->wants(name); });
    return wanted;
  }
  Status tensor(const StepInfo& step, const SavedTensor& saved) override {
    step_ = step;
    Status told;
    SMD_RETURN_IF_ERROR(guarded([&] { told = feed_->tensor(step, saved); }));
    return told;
  }
  Status end_step() override {
    SMD_RETURN_IF_ERROR(guarded([&] { feed_->end_step(); }));
    progress_.newest_step = step_;
    progress_.newest_secs = secs_of(std::chrono::steady_clock::now());
    progress_.worker_secs[worker_] = progress_.newest_secs;
    report_failures();
    return file_->flush();
  }
  std::optional<std::chrono::steady_clock::time_point> due() const override {
    return broken_ ? std::nullopt : next_tick_;
  }
  Status tick() override {
    const auto now = std::chrono::steady_clock::now();
    plan_tick(now);
    progress_.now_secs = secs_of(now);
    SMD_RETURN_IF_ERROR(guarded([&] { runner_.tick(progress_); }));
    report_failures();
    return file_->flush();
  }
  Status close() override {
    const Status finished = guarded([&] { runner_.finish(); });
    report_failures();
    const Status closed = file_->close();
    if (owner_) owner_->end();
    return finished.ok() ? closed : finished;
  }

 private:
  static double secs_of(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  }

  // While no step comes, rules that watch the clock are asked as often as they want.
  void plan_tick(std::chrono::steady_clock::time_point now) {
    const auto secs = runner_.tick_secs();
    if (!secs) return next_tick_.reset();
    next_tick_ = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(*secs));
  }

  // Whatever happens in a rule ends the watch and nothing else: memory may run out, say.
  template <typename F>
  Status guarded(F&& f) {
    if (broken_) return {};
    try {
      f();
    } catch (const std::exception& error) {
      broken_ = true;
      return Error{ErrorCode::internal,
                   fmt::format("The rules are not evaluated any more. {}", error.what())};
    }
    return {};
  }

  void on_hit(const rules::Evaluation& evaluation, const rules::Hit& hit) {
    Json record = rules::hit_record(evaluation, hit);
    file_->add(record);
    watch_.put(WatchHit{.rule = place_of(evaluation), .record = std::move(record)});
  }

  size_t place_of(const rules::Evaluation& evaluation) const {
    const auto& all = runner_.evaluations();
    return static_cast<size_t>(
        std::ranges::find_if(all, [&](const auto& one) { return one.get() == &evaluation; }) -
        all.begin());
  }

  void report_failures() {
    for (size_t i = 0; i < runner_.evaluations().size(); ++i) {
      const rules::Evaluation& evaluation = *runner_.evaluations()[i];
      if (evaluation.status() != rules::RuleStatus::error || !failed_.insert(i).second) continue;
      watch_.put(
          WatchMessage{.level = LogLevel::error,
                       .text = fmt::format("The rule {} failed and is not evaluated any more. {}",
                                           evaluation.kind().name, evaluation.error())});
    }
  }

  Watch& watch_;
  std::shared_ptr<Watch> owner_;
  std::optional<FindingsFile> file_;
  // The runner is finished before the feed is gone: it looks at nothing afterwards.
  std::optional<StepFeed> feed_;
  rules::Runner runner_;
  std::set<size_t> failed_;
  bool broken_ = false;
  std::string worker_;
  StepInfo step_;  // what is being saved
  rules::Progress progress_;
  std::optional<std::chrono::steady_clock::time_point> next_tick_;
};

Watch::Watch(WatchOptions options) : options_(std::move(options)) {}

Watch::~Watch() = default;

Result<std::shared_ptr<Watch>> Watch::create(WatchOptions options) {
  std::shared_ptr<Watch> watch(new Watch(std::move(options)));
  watch->judge_ = std::make_unique<Judge>(*watch);
  rules::Runner& runner = watch->judge_->runner();
  for (const WatchedRule& rule : watch->options_.rules) {
    const rules::RuleKind* kind = rule.kind;
    if (kind == nullptr) {
      SMD_TRY(kind, rules::find_rule(rule.rule));
    }
    SMD_RETURN_IF_ERROR(runner.add(*kind, rule.parameters));
    SMD_TRY(auto wishes, needs_of(*runner.evaluations().back(), rule.save_interval));
    for (SaveWish& wish : wishes) watch->wishes_.push_back(std::move(wish));
  }
  // Rules of the same name with other patterns need other collections.
  std::map<std::string, std::vector<SaveWish*>> by_name;
  for (SaveWish& wish : watch->wishes_) {
    auto& same = by_name[wish.collection];
    const auto differs = [&](const SaveWish* other) {
      return other->include_regex != wish.include_regex ||
             other->exclude_regex != wish.exclude_regex;
    };
    const bool is_own = wish.collection.starts_with("rule_");
    if (is_own && std::ranges::any_of(same, differs)) {
      wish.collection += fmt::format("_{}", same.size() + 1);
    }
    same.push_back(&wish);
  }
  return watch;
}

void Watch::attach(HookOptions& options) {
  options.wishes.insert(options.wishes.end(), wishes_.begin(), wishes_.end());
  options.outputs.push_back(
      [watch = shared_from_this()](const OutputPlace& place) -> Result<std::unique_ptr<Output>> {
        if (!watch->judge_) {
          return Error{ErrorCode::invalid_argument, "These rules already watch another hook."};
        }
        watch->judge_->start(watch, place);
        return std::unique_ptr<Output>(std::move(watch->judge_));
      });
}

void Watch::put(WatchEvent event) {
  {
    std::lock_guard lock(mutex_);
    if (events_.size() >= options_.max_events) events_.pop_front();
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

void Watch::end() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

std::optional<WatchEvent> Watch::take(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return ended_ || !events_.empty(); });
  if (events_.empty()) return std::nullopt;
  WatchEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool Watch::ended() const {
  std::lock_guard lock(mutex_);
  return ended_ && events_.empty();
}

}  // namespace smd::watch
