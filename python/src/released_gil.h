#pragma once

// Lets other Python threads run while much memory is moved.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

namespace smdebug {

namespace nb = nanobind;

class ReleasedGil final {
 public:
  // Of less than that, others do not notice.
  static constexpr int64_t kLeastBytes = 64 << 10;

  explicit ReleasedGil(int64_t bytes) {
    if (bytes >= kLeastBytes) released_.emplace();
  }

 private:
  std::optional<nb::gil_scoped_release> released_;
};

}  // namespace smdebug
