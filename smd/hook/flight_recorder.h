#pragma once

// The last steps of a training, in memory: reductions of the tensors, and their values if wanted.
// Every step is kept, whatever is saved; writing them is up to the owner. Memory is bounded by
// max_bytes: first the values of old steps go, then old steps. One thread at a time.

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"
#include "smd/writer/sink.h"
#include "smd/writer/writer.h"

namespace smd {

struct FlightRecorderOptions {
  int64_t steps = 0;  // 0: there is no recorder
  bool raw = false;   // values of the tensors, too
  size_t max_bytes = size_t{256} << 20;

  bool operator==(const FlightRecorderOptions&) const = default;
};

class FlightRecorder final {
 public:
  explicit FlightRecorder(const FlightRecorderOptions& options) : options_(options) {}

  const FlightRecorderOptions& options() const { return options_; }

  // The oldest step makes room.
  void begin_step(const StepInfo& step);
  // Of the step that was begun last; before the first one: nothing.
  void add(std::string_view name, double wall_secs, std::span<const StoredReduction> values);
  // The same for callers that have kept the number of a name: it never changes.
  void add(uint32_t number, double wall_secs, std::span<const StoredReduction> values);
  uint32_t number_of(std::string_view name);
  void add_raw(std::string_view name, const TensorView& tensor, double wall_secs);
  // The same of a step that was begun before; if it has gone: nothing.
  void add_late(Step step, uint32_t number, double wall_secs,
                std::span<const StoredReduction> values);
  void add_late_raw(Step step, std::string_view name, const TensorView& tensor, double wall_secs);
  // The run has the tensors of the current step: it need not be written again.
  void mark_saved();
  // The same of the steps before that one.
  void mark_saved_before(Step step);

  // Steps that are kept and not saved, oldest first.
  std::vector<StepInfo> unsaved() const;
  // Everything that is kept of a step goes to the writer, within a step that is open there.
  void write_step(Step step, Writer& writer) const;
  // Forgets all steps; names are remembered.
  void clear();

  // The reductions of a tensor, oldest step first.
  struct Past {
    StepInfo step;
    std::span<const StoredReduction> values;  // valid until the next change
  };
  std::vector<Past> history(std::string_view name) const;

  // What is kept at the moment, at most max_bytes, or one step if a single one is larger.
  size_t bytes() const { return bytes_; }
  // Whether something had to go before its time.
  bool was_full() const { return was_full_; }

 private:
  struct Tensor {
    uint32_t name = 0;
    uint32_t first = 0;  // of the values of its step
    uint32_t count = 0;
    double wall_secs = 0;
  };
  struct Raw {
    uint32_t name = 0;
    DType dtype = DType::float32;
    Shape shape;
    std::vector<std::byte> elements;
    double wall_secs = 0;
  };
  struct Kept {
    StepInfo step;
    bool saved = false;
    std::vector<Tensor> tensors;
    std::vector<StoredReduction> values;
    std::vector<Raw> raw;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void add_to(Kept& kept, uint32_t number, double wall_secs,
              std::span<const StoredReduction> values);
  void add_raw_to(Kept& kept, std::string_view name, const TensorView& tensor, double wall_secs);
  Kept* find(Step step);
  const Kept* find(Step step) const;
  // With values and tensors, but without raw ones; what it held does not count any more.
  Kept take_front();
  void drop_raw(Kept& kept);
  void make_room();

  const FlightRecorderOptions options_;
  std::deque<Kept> steps_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, uint32_t, Hash, std::equal_to<>> numbers_;
  size_t bytes_ = 0;
  bool was_full_ = false;
};

}  // namespace smd
