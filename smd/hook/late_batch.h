#pragma once

// What a hook saves of a list of tensors whose statistics come from a device: found once, by
// whoever asks first, the training thread or the writer thread. Thread-safe.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/hook/late_list.h"
#include "smd/reduce/reduction.h"
#include "smd/writer/late.h"
#include "smd/writer/sink.h"

namespace smd {

// What is wanted of one tensor of the list.
struct LateItem {
  std::string name;
  size_t index = 0;                // in the list
  std::optional<uint32_t> number;  // of the name, in the flight recorder that the hook feeds
  ReductionSet saved;              // written to the run
  ReductionSet recorded;           // kept by the flight recorder
  bool watched = false;            // a NaN in it starts saving
  bool metric = false;             // its mean is a metric of the job
  bool scalar = false;             // a single number of it is shown
  std::string shown_as;            // the name of its histogram; empty: none

  bool is_written() const { return !saved.empty() || metric || scalar || !shown_as.empty(); }
};

class LateBatch final : public LateNumbers {
 public:
  LateBatch(std::shared_ptr<LateList> list, std::vector<LateItem> items, double wall_secs)
      : list_(std::move(list)), items_(std::move(items)), wall_secs_(wall_secs) {}

  const std::vector<LateItem>& items() const { return items_; }
  double wall_secs() const { return wall_secs_; }

  // Whether results() need not wait.
  bool is_ready() const { return has_results() || list_->is_ready(); }
  // Whether somebody has called results(), and it returned.
  bool has_results() const { return done_.load(std::memory_order_acquire); }
  // One for each item; none: they are not to be saved. They live as long as this object. Waits.
  // Error: the device has failed.
  Result<std::span<const LateResults>> results();

  Result<std::span<const LateFound>> wait() override;

 private:
  std::optional<SavedScalar> scalar_of(const LateItem& item, const LateResults& results) const;

  const std::shared_ptr<LateList> list_;
  const std::vector<LateItem> items_;
  const double wall_secs_;

  std::mutex mutex_;  // guards finding the results, which never change afterwards
  std::vector<LateResults> results_;
  std::atomic<bool> done_{false};
  // Of the writer thread alone.
  std::vector<StoredReduction> stored_;
  std::vector<LateFound> found_;
};

// Those of the results that are wanted, as they are stored.
void add_stored(const LateResults& results, const ReductionSet& wanted,
                std::vector<StoredReduction>& out);

}  // namespace smd
