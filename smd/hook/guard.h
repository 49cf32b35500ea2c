#pragma once

// The one place that decides what a failure of ours does to the training: nothing.
// It is logged once per place and kind; after too many different ones recording stops.
// In strict mode (our own tests) errors come back to the caller instead. One thread at a time.

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "smd/base/log.h"
#include "smd/base/result.h"

namespace smd {

class Guard final {
 public:
  Guard(bool strict, std::shared_ptr<Log> log) : strict_(strict), log_(std::move(log)) {}

  // `site` names what was being done: "save", "begin_step". Gives the error back in strict mode,
  // else success.
  Status handle(std::string_view site, Error error);

  bool strict() const { return strict_; }
  // Recording has stopped for good.
  bool disabled() const { return disabled_; }
  // Failures so far, repeated ones included.
  int64_t failures() const { return failures_; }

 private:
  const bool strict_;
  std::shared_ptr<Log> log_;
  std::set<std::pair<std::string, ErrorCode>> seen_;
  int64_t failures_ = 0;
  bool disabled_ = false;
};

}  // namespace smd
