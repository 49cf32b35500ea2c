#pragma once

// What a rule keeps of each tensor of each worker in each mode from one step to the next.
// One thread at a time.

#include <cstdint>
#include <deque>

#include "smd/rules/step_view.h"
#include "smd/types/mode.h"

namespace smd::rules {

// T{} stands for a tensor that was not seen yet.
template <typename T>
class RowTable final {
 public:
  // The reference stays good.
  T& of(const TensorRow& row, Mode mode = Mode::global) { return at(row.tensor, row.worker, mode); }
  T& at(uint32_t tensor, uint32_t worker, Mode mode = Mode::global) {
    const size_t place = worker * kModes.size() + index_of(mode);
    if (place >= tables_.size()) tables_.resize(place + 1);
    std::deque<T>& table = tables_[place];
    if (tensor >= table.size()) table.resize(tensor + 1);
    return table[tensor];
  }

  // Calls f(tensor, worker, T&), also for tensors that were not seen.
  template <typename F>
  void for_each(F&& f) {
    for (size_t place = 0; place < tables_.size(); ++place) {
      for (size_t tensor = 0; tensor < tables_[place].size(); ++tensor) {
        f(static_cast<uint32_t>(tensor), static_cast<uint32_t>(place / kModes.size()),
          tables_[place][tensor]);
      }
    }
  }

 private:
  std::deque<std::deque<T>> tables_;  // by worker and mode, then by tensor
};

}  // namespace smd::rules
