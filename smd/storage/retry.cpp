#include "smd/storage/retry.h"

#include <algorithm>
#include <random>

namespace smd::storage {
namespace {

constexpr int kMostDoublings = 20;

std::function<double()> system_random() {
  return [engine = std::mt19937_64(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>()(engine);
  };
}

}  // namespace

RetrySchedule::RetrySchedule(RetryLimits limits, std::function<double()> random)
    : limits_(limits), random_(random ? std::move(random) : system_random()) {}

std::chrono::milliseconds RetrySchedule::next() {
  const auto grown = limits_.first * (int64_t{1} << tries_);
  tries_ = std::min(tries_ + 1, kMostDoublings);
  const auto most = std::min<std::chrono::milliseconds>(grown, limits_.longest);
  return std::chrono::duration_cast<std::chrono::milliseconds>(random_() * most);
}

}  // namespace smd::storage
