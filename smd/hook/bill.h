#pragma once

// What recording has cost the training so far. Plain values.

#include <cstdint>
#include <string>
#include <string_view>

namespace smd {

struct Bill {
  double cost_secs = 0;      // on the training thread
  double training_secs = 0;  // since the first step began, the cost included
  int64_t steps = 0;         // of the training
  int64_t saved_steps = 0;
  int64_t tensors = 0;  // values and reduced tensors that were handed over
  uint64_t bytes = 0;   // of their values and reductions
  // Tensors whose values found no room in the queue, and are missing from their steps.
  int64_t left_out = 0;
  uint64_t left_out_bytes = 0;
  int64_t stride = 1;  // by which intervals are longer at the moment, see Budget

  // Of the training time; 0 before there is any.
  double share() const { return training_secs > 0 ? cost_secs / training_secs : 0; }
  // One sentence.
  std::string to_text() const;
  // Of this worker, as a file of the run.
  std::string to_json(std::string_view worker) const;
};

// overhead/<worker>.json
std::string bill_file_name(std::string_view worker);

}  // namespace smd
