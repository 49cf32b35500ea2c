#include "smd/server/comparisons.h"

#include <algorithm>

#include "smd/base/signals_blocked.h"

namespace smd::server {
namespace {

constexpr size_t kMostKept = 16;
constexpr size_t kMostWaiting = 4;
constexpr size_t kMostRows = 200;

}  // namespace

Comparisons::Comparisons(std::function<void(const ComparisonKey&, Comparison::State)> told)
    : told_(std::move(told)) {
  const SignalsBlocked none;
  thread_ = std::thread([this] { work(); });
}

Comparisons::~Comparisons() { stop(); }

void Comparisons::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<Comparison> Comparisons::ask(const ComparisonKey& key, const std::shared_ptr<ServedRun>& a,
                                    const std::shared_ptr<ServedRun>& b) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const std::shared_ptr<Job>& job) { return job->key == key; };
  if (const auto found = std::ranges::find_if(jobs_, same); found != jobs_.end()) {
    return (*found)->comparison;
  }
  const auto is_pending = [](const std::shared_ptr<Job>& job) {
    return job->comparison.state == Comparison::State::pending;
  };
  // A growing run would make one after the other: while one of the two runs is under way, it is
  // what everybody waits for.
  const auto is_older = [&](const std::shared_ptr<Job>& job) {
    return is_pending(job) && job->key.a == key.a && job->key.b == key.b &&
           job->key.mode == key.mode && job->key.tolerance.absolute == key.tolerance.absolute &&
           job->key.tolerance.relative == key.tolerance.relative;
  };
  if (const auto older = std::ranges::find_if(jobs_, is_older); older != jobs_.end()) {
    return (*older)->comparison;
  }
  if (static_cast<size_t>(std::ranges::count_if(jobs_, is_pending)) >= kMostWaiting) {
    return Error{ErrorCode::closed,
                 "Other comparisons are being made; ask again when they are ready."};
  }
  jobs_.push_front(std::make_shared<Job>(
      Job{.key = key,
          .a = a,
          .b = b,
          .comparison = {.revision_a = key.revision_a, .revision_b = key.revision_b}}));
  while (jobs_.size() > kMostKept && !is_pending(jobs_.back())) jobs_.pop_back();
  changed_.notify_all();
  return jobs_.front()->comparison;
}

Result<Diff> Comparisons::compare(const ComparisonKey& key, ServedRun& a, ServedRun& b,
                                  const std::function<bool(int64_t, int64_t)>& progress) {
  return diff_trials(
      *a.trial(), *b.trial(),
      {.tolerance = key.tolerance, .mode = key.mode, .top = kMostRows, .progress = progress});
}

void Comparisons::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Job> job;
    changed_.wait(lock, [&] {
      // The one that waits longest.
      for (auto at = jobs_.rbegin(); at != jobs_.rend() && !job; ++at) {
        if ((*at)->comparison.state == Comparison::State::pending) job = *at;
      }
      return stop_ || job;
    });
    if (stop_) return;
    lock.unlock();
    auto diff = compare(job->key, *job->a, *job->b, [&](int64_t done, int64_t total) {
      const std::lock_guard held(mutex_);
      job->comparison.done_steps = done;
      job->comparison.total_steps = total;
      return !stop_;
    });
    lock.lock();
    if (diff.ok()) {
      job->comparison.state = Comparison::State::ready;
      job->comparison.diff = std::make_shared<const Diff>(std::move(*diff));
    } else {
      job->comparison.state = Comparison::State::failed;
      job->comparison.error = diff.error().message;
    }
    job->a.reset();
    job->b.reset();
    const Comparison::State state = job->comparison.state;
    if (stop_ || !told_) continue;
    lock.unlock();
    told_(job->key, state);
    lock.lock();
  }
}

}  // namespace smd::server
