#pragma once

// What a hook found out about the training, as files beside the run and as lines for people. Pure
// functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/hook/bad_tensors.h"
#include "smd/hook/flight_recorder.h"
#include "smd/types/step.h"

namespace smd {

struct BadTensorFinding {
  const BadTensors& bad;
  std::string_view worker;
  std::vector<FlightRecorder::Past> before;  // of the first bad tensor
  std::optional<Step> last_saved_step;
};

// findings/first_bad_tensor_<worker>.json
std::string bad_tensor_file_name(std::string_view worker);
std::string to_json(const BadTensorFinding& finding);
// One line.
std::string to_text(const BadTensorFinding& finding);

struct FlightDump {
  std::string_view reason;
  std::string_view worker;
  std::vector<Step> in_run = {};     // steps that were added to the run
  std::vector<Step> in_folder = {};  // steps that are in a run of their own
  std::string_view folder = {};      // of that run, below this one
};

// findings/flight_recorder_<worker>.json
std::string flight_file_name(std::string_view worker);
std::string to_json(const FlightDump& dump);
std::string to_text(const FlightDump& dump);

}  // namespace smd
