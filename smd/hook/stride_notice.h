#pragma once

// How the workers of a job agree on the steps to save: the chief says from which step on which
// stride holds, in a small file of the run, some saved steps ahead. Plain value, pure functions.

#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/types/step.h"

namespace smd {

struct StrideNotice {
  Step from_step = 0;  // of the job
  int64_t stride = 1;

  static constexpr std::string_view kPath = "budget/stride.json";
  std::string to_json() const;
  static Result<StrideNotice> parse(std::string_view json);

  bool operator==(const StrideNotice&) const = default;
};

}  // namespace smd
