#pragma once

// What a run consists of: its tensors with element type and shape, its steps with their times, and
// the numbers that are stored. Plain values and one function, which any thread may call.

#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/trial/trial.h"

namespace smd {

struct Catalog {
  struct TensorEntry {
    std::string name;
    // As first saved; nullopt where only reductions tell of the tensor.
    std::optional<DType> dtype;
    std::optional<Shape> shape;
  };
  struct StepEntry {
    StepInfo info;
    std::optional<double> wall_secs;  // Unix time of its first value; nullopt: nobody recorded it
    uint32_t workers = 0;             // that saved it
    bool complete = false;
  };
  // A reduction, or "value" for tensors that are a single number.
  struct NumberEntry {
    std::string name;
    bool float32 = false;  // all of them are stored so
  };

  std::vector<TensorEntry> tensors;  // by name
  std::vector<StepEntry> steps;      // by global step
  std::vector<NumberEntry> numbers;  // by name, first those without "abs_"; "value" last
  std::vector<std::string> workers;  // that saved steps, by name
};

// Of what the trial knows now. Reads the beginning of one record for each tensor that was saved as
// it is, and, where no log tells the time, of one for each step. Errors tell of damaged files.
Result<Catalog> read_catalog(const Trial& trial);

}  // namespace smd
