#pragma once

// Applies commands to the sink and the outputs; a failure of the sink costs the open step and no
// other. Borrows the progress, which must outlive it, and reports there. Writer thread only.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/format/tensor_record.h"
#include "smd/types/step.h"
#include "smd/writer/batch.h"
#include "smd/writer/output.h"
#include "smd/writer/sink.h"
#include "smd/writer/writer_progress.h"

namespace smd {

class Executor final {
 public:
  Executor(std::unique_ptr<Sink> sink, std::vector<std::unique_ptr<Output>> outputs,
           WriterProgress& progress);

  void run(const Command& command);

  // Of the sink and the outputs, the earliest.
  std::optional<std::chrono::steady_clock::time_point> due() const;
  // Calls those that are due.
  void tick();

  // Gives up a step that has no end, and closes the sink and the outputs.
  void finish();

 private:
  // Who wants a tensor, under which of its names.
  struct Wanting {
    Output* output;
    std::string_view name;
  };

  void run_late(const LateData& late);
  void await(const AwaitMemory& late);
  void run_on_sink(const Command& command);
  std::optional<Status> apply_apart(const Command& command);
  Status apply(const Command& command);
  void fail(std::optional<Error> error);

  bool apply_to_outputs(const Command& command);
  void begin_tensor(const TensorData& data);
  void ask(std::string_view name);
  void more_tensor(ByteSpan elements);
  void tell_tensor(const format::TensorHead& head, ByteSpan elements);

  const std::unique_ptr<Sink> sink_;
  const std::vector<std::unique_ptr<Output>> outputs_;
  WriterProgress& progress_;
  StepInfo step_;
  bool open_ = false;
  bool broken_ = false;
  bool is_unfilled_ = false;  // the memory of the tensor that comes next
  // Of a tensor that comes in parts.
  std::vector<Wanting> wanting_;
  format::TensorHead head_;
  std::vector<std::string> names_;
  std::vector<int64_t> shape_;
  size_t whole_bytes_ = 0;
  Bytes partial_;
};

}  // namespace smd
