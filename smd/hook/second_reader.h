#pragma once

// Reduces the tensors of a list together with a second thread: the caller takes them from the
// front, the other one from the back. It sleeps between lists, and a caller never waits for it to
// wake up, only for a tensor that it has begun. Of no use in forked children. One caller at a time.

#include <memory>
#include <span>

#include "smd/base/fork_guard.h"
#include "smd/base/result.h"
#include "smd/reduce/reduce.h"
#include "smd/tensor/tensor_view.h"

namespace smd {

class SecondReader final {
 public:
  struct Job {
    TensorView tensor;  // valid until finish()
    ReductionRequest request;
    ReductionResult result;
    Status status;
  };

  // The thread starts with the first list.
  SecondReader();
  ~SecondReader();
  SecondReader(const SecondReader&) = delete;
  SecondReader& operator=(const SecondReader&) = delete;

  // Whether this process may use two processors.
  static bool has_processor();

  // The jobs stay where they are until finish(), which must follow.
  void begin(std::span<Job> jobs);
  // Whether the next job from the front is the caller's; false: the others belong to the second
  // thread.
  bool take();
  // From now on the jobs of the second thread are done.
  void finish();

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  ForkGuard fork_guard_;
  std::shared_ptr<Shared> shared_;  // with the thread, which may end later
  bool started_ = false;
};

}  // namespace smd
