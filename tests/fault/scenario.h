#pragma once

// What the recorder saves at a step, computed from the step's number and the run's own: the checker
// computes the same again. Runs differ in sizes and order, so that files of two runs do not fit
// together. Pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/tensor/dtype.h"
#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"

namespace smd::fault {

inline constexpr std::string_view kRunTensor = "run";

// Identifies a run; stored in every step as the tensor kRunTensor.
struct Run {
  int64_t seed = 0;
  int64_t big_every = 4;  // steps from one with large tensors to the next; 0: none has any

  bool operator==(const Run&) const = default;
};

// How the recorder hands a tensor to the hook.
enum class Way { plain, strided, owned, reduced, shape_only, scalar, strings };

struct Tensor {
  std::string name;
  Way way = Way::plain;
  DType dtype = DType::float32;
  Shape shape;
  Bytes elements;  // C order
  std::vector<std::string> strings;
};

// Every fifth step is an EVAL step.
StepInfo step_info(Step step);

// In the order of saving.
std::vector<Tensor> tensors_of(const Run& run, Step step);

// A record that must be in the file.
struct Expected {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  Bytes elements;
  std::vector<std::string> strings;
};

std::vector<Expected> expected_of(const Tensor& tensor);

// From the stored tensor of that name.
Run run_of(ByteSpan elements);

}  // namespace smd::fault
