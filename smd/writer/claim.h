#pragma once

// The claim file: one process at a time writes into a directory that is meant for one worker.
// A claim whose process has died is taken over. One thread at a time.

#include <memory>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd {

class Claim final {
 public:
  explicit Claim(std::shared_ptr<storage::Storage> storage) : storage_(std::move(storage)) {}

  // Success: this process holds the claim. closed: another one does, and the message says which.
  // Asks the storage once; a refusal holds for good.
  Status acquire();
  // Removes the claim if it is ours.
  void release();

 private:
  bool still_ours(std::string_view self);

  std::shared_ptr<storage::Storage> storage_;
  enum class State { unknown, ours, refused } state_ = State::unknown;
  Error refusal_;
};

}  // namespace smd
