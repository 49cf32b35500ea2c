#pragma once

// What differs between two runs: values, reductions, shapes and texts that both hold, and what only
// one of them holds. Plain values; comparing is a function that reads both runs, one thread at a
// time each.
//
// Steps belong together if mode and mode step are the same; of repeated ones the first counts.
// Workers belong together by name, or because each run has only one.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"
#include "smd/trial/element_diff.h"
#include "smd/trial/trial.h"

namespace smd {

struct DiffOptions {
  Tolerance tolerance;
  // Tensors in whose names one of them is found; empty: all.
  std::vector<std::string> patterns;
  // With Mode::global all modes.
  Mode mode = Mode::global;
  // How many tensors Diff::table has at most.
  size_t top = 20;
  // Called after each pair of steps; false stops the comparison.
  std::function<bool(int64_t done, int64_t total)> progress;
};

enum class DifferenceKind : uint8_t { value, reduction, dtype, shape, strings };
std::string_view name_of(DifferenceKind kind);

// Two records of one tensor that differ.
struct Difference {
  std::string tensor;
  std::string worker;  // in run A
  StepInfo step;       // in run A
  Step step_in_b = 0;  // global
  DifferenceKind kind = DifferenceKind::value;
  std::string reduction;  // "abs_mean", for that kind
  // Of values and reductions; of strings only how many and the first. Infinite for other kinds.
  ElementDiff elements;
  // "float32[2, 3]" for element types and shapes, the first differing text for strings.
  std::string a;
  std::string b;
  // In Diff::table: how many times, over steps and workers, the tensor differs.
  int64_t occurrences = 1;
};

// What one run holds and the other does not.
struct OnlyThere {
  struct Records {
    std::string tensor;
    StepInfo first;
    int64_t count = 0;  // values, reductions and shapes
  };
  std::vector<std::string> tensors;
  std::vector<StepInfo> steps;
  std::vector<std::string> workers;
  // Of tensors, steps and workers that both have.
  std::vector<Records> records;

  bool empty() const {
    return tensors.empty() && steps.empty() && workers.empty() && records.empty();
  }
};

struct Diff {
  struct Compared {
    int64_t steps = 0;
    int64_t tensors = 0;
    int64_t values = 0;  // texts included
    int64_t elements = 0;
    int64_t reductions = 0;
    int64_t shapes = 0;

    // One key per count, named like it.
    Json to_json() const;
  };

  std::string name_a;
  std::string name_b;
  // The smallest global step of A, then the worker, then the order of writing.
  std::optional<Difference> first;
  // The worst difference of each tensor, of its value rather than of a reduction, with the largest
  // relative differences first.
  std::vector<Difference> table;
  int64_t differing_tensors = 0;
  OnlyThere only_in_a;
  OnlyThere only_in_b;
  Compared compared;
  bool stopped = false;  // by DiffOptions::progress

  bool equal() const { return !first && only_in_a.empty() && only_in_b.empty() && !stopped; }
};

// Of what both trials know now. Errors tell of wrong patterns and of damaged files.
Result<Diff> diff_trials(Trial& a, Trial& b, const DiffOptions& options);

}  // namespace smd
