#include "smd/rules/spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace smd::rules {
namespace {

constexpr double kSigmaPerMad = 1.4826;  // of a normal distribution
// Series with hardly any spread: a sigma is never below this share of the median.
constexpr double kLeastSigma = 0.02;
// The largest number says little before there are a few.
constexpr size_t kLeastForFactor = 3;

// Reorders.
double middle(std::vector<double>& numbers) {
  const auto half = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), half, numbers.end());
  if (numbers.size() % 2 == 1) return *half;
  return (*half + *std::max_element(numbers.begin(), half)) / 2;
}

}  // namespace

SpikeOptions spike_options(const Parameters& parameters) {
  return {.window = parameters.integer("window"),
          .sigmas = parameters.real("sigmas"),
          .factor = parameters.real("factor"),
          .patience = parameters.integer("patience")};
}

double Spike::next_threshold() {
  double out = std::numeric_limits<double>::infinity();
  if (window_.size() >= kLeastForFactor && largest_ > 0) out = options_.factor * largest_;
  median_ = std::numeric_limits<double>::quiet_NaN();
  if (static_cast<int64_t>(window_.size()) < options_.least_points) return out;
  sorted_.assign(window_.begin(), window_.end());
  median_ = middle(sorted_);
  for (double& number : sorted_) number = std::fabs(number - median_);
  const double sigma = std::max(kSigmaPerMad * middle(sorted_), kLeastSigma * std::fabs(median_));
  return std::min(out, median_ + options_.sigmas * sigma);
}

void Spike::remember(double number) {
  window_.push_back(number);
  if (static_cast<int64_t>(window_.size()) > options_.window) window_.pop_front();
  largest_ = std::max(largest_, number);
}

Spike::Event Spike::add(double number, const StepInfo& step) {
  const bool is_finite = std::isfinite(number);
  if (!is_open_) {
    if (!is_finite) return Event::none;
    const double limit = next_threshold();
    if (!(number > limit)) {
      remember(number);
      return Event::none;
    }
    is_open_ = true;
    began_at_ = step;
    threshold_ = limit;
    first_ = peak_ = number;
    length_ = 1;
    stretch_.assign(1, number);
    return Event::began;
  }
  if (is_finite && number <= threshold_) {
    is_open_ = false;
    remember(number);
    return Event::ended;
  }
  ++length_;
  if (is_finite) {
    peak_ = std::max(peak_, number);
    stretch_.push_back(number);
  }
  if (static_cast<int64_t>(stretch_.size()) >= options_.window) {
    is_open_ = false;
    window_.clear();
    for (double one : stretch_) remember(one);
    return Event::settled;
  }
  return length_ == options_.patience ? Event::alarm : Event::none;
}

}  // namespace smd::rules
