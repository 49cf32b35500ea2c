#include "smd/storage/internal/spool_queue.h"

#include <utility>

namespace smd::storage::internal {

void SpoolQueue::add(SpoolJob job) {
  const uint64_t number = first_number_ + jobs_.size();
  const auto [known, added] = latest_.try_emplace(job.path, number);
  if (!added) {
    SpoolJob& replaced = jobs_[std::exchange(known->second, number) - first_number_];
    held_bytes_ -= std::exchange(replaced.bytes, 0);
  }
  jobs_.push_back(std::move(job));
}

bool SpoolQueue::front_is_latest() const { return latest_.at(jobs_.front().path) == first_number_; }

void SpoolQueue::pop() {
  if (front_is_latest()) latest_.erase(jobs_.front().path);
  held_bytes_ -= jobs_.front().bytes;
  jobs_.pop_front();
  ++first_number_;
}

const SpoolJob* SpoolQueue::latest(std::string_view path) const {
  const auto found = latest_.find(path);
  return found == latest_.end() ? nullptr : &jobs_[found->second - first_number_];
}

std::vector<const SpoolJob*> SpoolQueue::latest_below(std::string_view prefix) const {
  std::vector<const SpoolJob*> jobs;
  for (auto it = latest_.lower_bound(prefix); it != latest_.end() && it->first.starts_with(prefix);
       ++it) {
    jobs.push_back(&jobs_[it->second - first_number_]);
  }
  return jobs;
}

}  // namespace smd::storage::internal
