#pragma once

// One statistic of many tensors over many steps as one dense array: what charts, rules and tables
// of a whole run need. Numbers of packed runs are copied block by block, without looking up single
// values. Plain values and one function, which any thread may call.
//
//   auto matrix = read_matrix(*trial, {.reduction = "mean"});
//   matrix->number(row, column);   // of matrix->names[row] at matrix->steps[column]

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/trial/trial.h"

namespace smd {

struct MatrixOptions {
  // "min", "abs_mean", "l2_norm". What is not stored is computed where the tensor's value is.
  // Empty or "value": the value of tensors that are a single number.
  std::string reduction{};
  // Numbers of Names::tensors, each once, in the order of the rows; nullopt: all that have the
  // number at one of the steps, by name.
  std::optional<std::vector<uint32_t>> tensors{};
  // Steps are those of the mode, as in Snapshot.
  Mode mode = Mode::global;
  std::string worker{};  // empty: at each step the first that has the number
  StepRange steps{};
  bool incomplete = false;  // with steps that some worker lacks
  bool compute = true;      // what is not stored; otherwise it is missing
};

struct Matrix {
  std::vector<std::string> names;  // of the rows
  std::vector<Step> steps;         // of the columns: those at which at least one row has a number
  // float32 if every number is stored as one, so that nothing is rounded; otherwise float64.
  DType dtype = DType::float64;
  // Row by row, NaN where there is no number.
  ByteSpan elements;
  // A byte for each number, 0: there is none. Empty: all are there. Tells a missing number from a
  // NaN that was recorded.
  std::vector<uint8_t> present;
  std::shared_ptr<std::byte> memory;  // holds the elements

  size_t rows() const { return names.size(); }
  size_t columns() const { return steps.size(); }
  bool has(size_t row, size_t column) const {
    return present.empty() || present[row * columns() + column] != 0;
  }
  double number(size_t row, size_t column) const;
};

// Of what the trial knows now. invalid_argument: no such tensor, reduction or worker. Other errors
// tell of damaged or removed files.
Result<Matrix> read_matrix(const Trial& trial, const MatrixOptions& options);

}  // namespace smd
