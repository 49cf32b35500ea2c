#pragma once

// Reductions of the tensors that were reduced last, by a number that stands for their elements: the
// same tensor may be offered again under another name. One thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>

#include "smd/reduce/reduce.h"

namespace smd {

class KnownResults final {
 public:
  static constexpr size_t kMost = 32;

  // A number for elements that have none yet; never zero.
  uint64_t next_content() { return ++last_content_; }

  // What was found of these elements, if it holds everything that is requested; else nullptr.
  const ReductionResult* find(uint64_t content, const ReductionRequest& request) const {
    const Known& known = known_[content % kMost];
    return known.content == content && covers(known.request, request) ? &known.result : nullptr;
  }
  // To be filled with what is requested of these elements. Stays until kMost others have come.
  ReductionResult& add(uint64_t content, const ReductionRequest& request) {
    Known& known = known_[content % kMost];
    known.content = content;
    known.request = request;
    return known.result;
  }
  // Whether results of the one hold those of the other.
  static bool covers(const ReductionRequest& known, const ReductionRequest& wanted) {
    return (wanted.reductions.bits() & ~known.reductions.bits()) == 0 &&
           (known.count_special || !wanted.count_special) && (known.histogram || !wanted.histogram);
  }
  // What was to be filled could not be.
  void drop(uint64_t content) { known_[content % kMost].content = 0; }

 private:
  struct Known {
    uint64_t content = 0;
    ReductionRequest request;
    ReductionResult result;
  };

  std::array<Known, kMost> known_;
  uint64_t last_content_ = 0;
};

}  // namespace smd
