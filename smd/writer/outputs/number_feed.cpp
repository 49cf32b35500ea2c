#include "smd/writer/outputs/number_feed.h"

#include <algorithm>

#include "smd/base/bytes.h"

namespace smd {
namespace {

double number_of(const StoredReduction& value) {
  switch (value.dtype) {
    case DType::float32: return double{load_le<float>(value.bits.data())};
    case DType::float64: return load_le<double>(value.bits.data());
    case DType::uint64: return static_cast<double>(load_le<uint64_t>(value.bits.data()));
    case DType::uint32: return load_le<uint32_t>(value.bits.data());
    case DType::uint16: return load_le<uint16_t>(value.bits.data());
    case DType::boolean:
    case DType::uint8: return load_le<uint8_t>(value.bits.data());
    case DType::int32: return load_le<int32_t>(value.bits.data());
    case DType::int16: return load_le<int16_t>(value.bits.data());
    case DType::int8: return load_le<int8_t>(value.bits.data());
    default: return static_cast<double>(load_le<int64_t>(value.bits.data()));
  }
}

class FeedOutput final : public Output {
 public:
  FeedOutput(std::shared_ptr<NumberFeed> feed, std::string worker)
      : feed_(std::move(feed)), worker_(std::move(worker)) {}
  ~FeedOutput() override { feed_->end(); }

  Status scalar(const StepInfo& step, const SavedScalar& scalar) override {
    if (scalar.is_mean) return {};
    begin(step, scalar.wall_secs).scalars.emplace_back(scalar.name, scalar.value);
    return {};
  }
  Status reductions(const StepInfo& step, const SavedReductions& saved) override {
    for (const StoredReduction& value : saved.values) {
      if (!feed_->wants(value.name)) continue;
      begin(step, saved.wall_secs)
          .reductions.push_back({.tensor = std::string(saved.tensor),
                                 .reduction = std::string(value.name),
                                 .value = number_of(value)});
    }
    return {};
  }
  Status end_step() override {
    if (open_) feed_->put(std::move(*open_));
    open_.reset();
    return {};
  }
  Status close() override {
    feed_->end();
    return {};
  }

 private:
  FedStep& begin(const StepInfo& step, double wall_secs) {
    if (!open_) open_ = FedStep{.step = step, .worker = worker_, .wall_secs = wall_secs};
    return *open_;
  }

  const std::shared_ptr<NumberFeed> feed_;
  const std::string worker_;
  std::optional<FedStep> open_;
};

}  // namespace

std::optional<FedStep> NumberFeed::take(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return !steps_.empty() || ended_; });
  if (steps_.empty()) return std::nullopt;
  FedStep step = std::move(steps_.front());
  steps_.pop_front();
  return step;
}

bool NumberFeed::ended() const {
  std::lock_guard lock(mutex_);
  return ended_ && steps_.empty();
}

int64_t NumberFeed::dropped_steps() const {
  std::lock_guard lock(mutex_);
  return dropped_steps_;
}

bool NumberFeed::wants(std::string_view reduction) const {
  const auto& wanted = options_.reductions;
  return std::find(wanted.begin(), wanted.end(), reduction) != wanted.end();
}

void NumberFeed::put(FedStep step) {
  {
    std::lock_guard lock(mutex_);
    if (steps_.size() >= options_.max_steps) {
      steps_.pop_front();
      ++dropped_steps_;
    }
    steps_.push_back(std::move(step));
  }
  changed_.notify_one();
}

void NumberFeed::end() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

std::unique_ptr<Output> feed_output(std::shared_ptr<NumberFeed> feed, std::string worker) {
  return std::make_unique<FeedOutput>(std::move(feed), std::move(worker));
}

}  // namespace smd
