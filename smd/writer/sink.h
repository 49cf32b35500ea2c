#pragma once

// Where recorded steps go: one implementation per layout on disk.
// Called by the writer thread only. Views are valid during the call.

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/format/tensor_record.h"
#include "smd/types/step.h"

namespace smd {

// A reduction of a tensor, as it is stored.
struct StoredReduction {
  std::string_view name;  // "min", "abs_l2"; points to static memory
  DType dtype = DType::float64;
  std::array<std::byte, 8> bits{};

  ByteSpan bytes() const { return ByteSpan(bits).first(size_of(dtype)); }
};

struct JobEnd {
  int num_workers = 1;
  // End the job even if other workers do not show up soon.
  bool wait_for_others = false;
};

class Sink {
 public:
  virtual ~Sink() = default;

  virtual Status begin_step(const StepInfo& step) = 0;
  // Elements in C order and native byte order. `elements` may be the first part only; the rest
  // follows through more(), before anything else.
  virtual Status tensor(const format::TensorHead& head, ByteSpan elements) = 0;
  virtual Status more(ByteSpan elements) = 0;
  virtual Status reductions(std::string_view tensor, double wall_secs,
                            std::span<const StoredReduction> values) = 0;
  virtual Status strings(const format::TensorHead& head,
                         std::span<const std::string_view> strings) = 0;
  virtual Status shape(std::string_view tensor, std::string_view original_name,
                       std::span<const int64_t> shape) = 0;
  // Publishes the step: once this returns success, the step is never lost.
  virtual Status end_step() = 0;
  // Forgets what the open step has so far. Nothing of it becomes visible.
  virtual void abandon_step() = 0;

  // When tick() is to be called, if no step comes before. nullopt: it is not needed.
  virtual std::optional<std::chrono::steady_clock::time_point> due() const { return std::nullopt; }
  // Between two steps, once it is due.
  virtual Status tick() { return {}; }

  // A whole file beside the steps, such as the collections.
  virtual Status put(std::string_view path, std::string_view content) = 0;
  // This worker has saved its last step; the last of them ends the job for readers.
  virtual Status end_job(const JobEnd& end) = 0;
  virtual Status close() = 0;
};

}  // namespace smd
