#pragma once

// What a spool has to do at its destination, oldest first, and the bytes that it holds meanwhile.
// Of several jobs for one path the last one says what readers see. The owner's mutex guards it.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace smd::storage::internal {

// A file to be sent, or to be removed.
struct SpoolJob {
  std::string path;
  uint64_t bytes = 0;  // held for it in the directory
  bool removal = false;
  bool again = false;  // a part of it may be done
};

class SpoolQueue final {
 public:
  // Its bytes are held already. Those of a job that it replaces are let go: the file was replaced
  // or removed before it was sent, so that there is nothing to send any more.
  void add(SpoolJob job);

  bool empty() const { return jobs_.empty(); }
  // The oldest job, and whether it is the last one of its path.
  const SpoolJob& front() const { return jobs_.front(); }
  bool front_is_latest() const;
  // It has to be done once more.
  void keep_front() { jobs_.front().again = true; }
  // It is done.
  void pop();

  // The last job of this path; nullptr: there is none. Valid until the queue changes.
  const SpoolJob* latest(std::string_view path) const;
  // The last job of every path that begins so, sorted by path. Valid until the queue changes.
  std::vector<const SpoolJob*> latest_below(std::string_view prefix) const;

  // Bytes of jobs and of files that are being written.
  uint64_t held_bytes() const { return held_bytes_; }
  void hold(uint64_t bytes) { held_bytes_ += bytes; }
  void release(uint64_t bytes) { held_bytes_ -= bytes; }

 private:
  std::deque<SpoolJob> jobs_;
  uint64_t first_number_ = 0;                            // of jobs_.front()
  std::map<std::string, uint64_t, std::less<>> latest_;  // path → number of its last job
  uint64_t held_bytes_ = 0;
};

}  // namespace smd::storage::internal
