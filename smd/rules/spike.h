#pragma once

// Finds stretches in which a series of numbers stands far above what it was before: a robust
// threshold from the last ordinary numbers, and what became of each stretch.
// One thread at a time.

#include <cstdint>
#include <deque>
#include <vector>

#include "smd/rules/parameters.h"
#include "smd/types/step.h"

namespace smd::rules {

struct SpikeOptions {
  int64_t window = 100;       // ordinary numbers that are remembered
  int64_t least_points = 20;  // fewer of them give no threshold
  double sigmas = 7;          // how many times 1.4826 * MAD above the median
  double factor = 10;         // above so many times the largest ordinary number counts, too
  int64_t patience = 5;       // a stretch of so many numbers is an alarm
};

// For parameter tables of rules, and what they say.
inline constexpr ParameterSpec kSpikeWindow = {
    .name = "window",
    .type = ParameterType::integer,
    .default_text = "100",
    .help = "Values of which the median and the spread are taken.",
    .range = "[20,]"};
inline constexpr ParameterSpec kSpikeSigmas = {
    .name = "sigmas",
    .type = ParameterType::real,
    .default_text = "7",
    .help =
        "How many deviations (1.4826 times the median deviation) above the median count as a "
        "spike.",
    .range = "(0,]"};
inline constexpr ParameterSpec kSpikeFactor = {
    .name = "factor",
    .type = ParameterType::real,
    .default_text = "10",
    .help = "A value above this many times the largest one so far counts as a spike, too.",
    .range = "(1,]"};
inline constexpr ParameterSpec kSpikePatience = {
    .name = "patience",
    .type = ParameterType::integer,
    .default_text = "5",
    .help = "A spike of so many values in a row is an alarm; a shorter one is reported only.",
    .range = "[2,]"};
SpikeOptions spike_options(const Parameters& parameters);

class Spike final {
 public:
  enum class Event : uint8_t {
    none,
    began,
    alarm,    // it has lasted for `patience` numbers
    ended,    // this number is ordinary again
    settled,  // it has lasted for a whole window: the new level counts as ordinary from now on
  };

  explicit Spike(const SpikeOptions& options = {}) : options_(options) {}

  // The next number. One that is not finite never begins a stretch, but goes on with one.
  Event add(double number, const StepInfo& step);

  // --- of the stretch that has begun last
  bool is_open() const { return is_open_; }
  const StepInfo& began_at() const { return began_at_; }
  double threshold() const { return threshold_; }
  double median() const { return median_; }  // of the numbers before; NaN: there were too few
  double first() const { return first_; }
  double peak() const { return peak_; }
  int64_t length() const { return length_; }

 private:
  double next_threshold();
  void remember(double number);

  SpikeOptions options_;
  std::deque<double> window_;
  std::vector<double> sorted_;
  std::vector<double> stretch_;
  double largest_ = 0;
  bool is_open_ = false;
  StepInfo began_at_;
  double threshold_ = 0;
  double median_ = 0;
  double first_ = 0;
  double peak_ = 0;
  int64_t length_ = 0;
};

}  // namespace smd::rules
