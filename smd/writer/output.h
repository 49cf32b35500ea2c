#pragma once

// Something beside the run that wants what can be shown of it: single numbers, histograms, texts.
// Called by the writer thread only, step by step, whether or not the run itself could be written.
// Views are valid during the call. A failure costs what this output shows and nothing else.

#include <span>
#include <string_view>

#include "smd/base/result.h"
#include "smd/format/summary.h"
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
  // The step is over: what it had is to be readable now.
  virtual Status end_step() = 0;
  virtual Status close() = 0;
};

}  // namespace smd
