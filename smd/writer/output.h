#pragma once

// Something beside the run that wants what can be shown of it: single numbers, histograms, texts.
// Called by the writer thread only, step by step, whether or not the run itself could be written.
// Views are valid during the call. A failure costs what this output shows and nothing else.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/format/summary.h"
#include "smd/tensor/dtype.h"
#include "smd/types/step.h"
#include "smd/writer/sink.h"

namespace smd {

struct SavedScalar {
  std::string_view name;  // of the tensor, with its prefix
  double value = 0;
  double wall_secs = 0;    // Unix time
  bool is_metric = false;  // meant for the platform that runs the job
  bool is_mean = false;    // of a tensor with several elements, which itself is no scalar
};

struct SavedReductions {
  std::string_view tensor;
  double wall_secs = 0;
  std::span<const StoredReduction> values;
};

// A tensor with all its elements, in C order and native byte order.
struct SavedTensor {
  std::string_view name;
  DType dtype = DType::float32;
  std::span<const int64_t> shape;
  double wall_secs = 0;
  ByteSpan elements;
};

struct SavedStrings {
  std::string_view name;
  std::span<const int64_t> shape;
  double wall_secs = 0;
  std::span<const std::string_view> strings;
};

struct SavedShape {
  std::string_view tensor;
  std::span<const int64_t> shape;
};

// The collections that hold a tensor.
struct SavedMembership {
  std::string_view tensor;
  std::span<const std::string_view> collections;
};

struct SavedHistogram {
  std::string_view name;  // collection/tensor
  double wall_secs = 0;
  format::HistogramView histogram;
};

struct SavedText {
  std::string_view name;
  double wall_secs = 0;
  std::string_view markdown;
};

class Output {
 public:
  virtual ~Output() = default;

  virtual Status scalar(const StepInfo& step, const SavedScalar& scalar) = 0;
  // Many outputs have no use for these.
  virtual Status reductions(const StepInfo&, const SavedReductions&) { return {}; }
  virtual Status histogram(const StepInfo&, const SavedHistogram&) { return {}; }
  virtual Status text(const StepInfo&, const SavedText&) { return {}; }
  // Before anything of the tensor, and again when it has changed.
  virtual Status membership(const StepInfo&, const SavedMembership&) { return {}; }
  virtual Status shape(const StepInfo&, const SavedShape&) { return {}; }
  virtual Status strings(const StepInfo&, const SavedStrings&) { return {}; }
  // Whether tensor() is to be called for it, with the whole of it.
  virtual bool wants_tensor(std::string_view) { return false; }
  virtual Status tensor(const StepInfo&, const SavedTensor&) { return {}; }
  // The step is over: what it had is to be readable now. A step that was dropped has no end.
  virtual Status end_step() = 0;
  // When tick() is to be called, if nothing comes before. nullopt: it is not needed.
  virtual std::optional<std::chrono::steady_clock::time_point> due() const { return std::nullopt; }
  // Once it is due.
  virtual Status tick() { return {}; }
  virtual Status close() = 0;
};

}  // namespace smd
