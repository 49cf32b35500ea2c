#pragma once

// One step of a training loop: begins where it is made and ends where it goes out of scope, also on
// an early return or an exception, so that readers see it. Borrows the hook, which must outlive it.
// One thread at a time, the hook's.
//
// Saving cannot fail in a way that the loop must handle: the first error of a step is kept for
// status(), and one that nobody asked for goes to the log, once.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/hook/hook.h"
#include "smd/native/view.h"

namespace smd {

class StepScope final {
 public:
  // The next step, in the hook's mode.
  explicit StepScope(Hook& hook);
  // The next step of a mode, which becomes the hook's.
  StepScope(Hook& hook, Mode mode);
  // With a number of the caller's, greater than the last.
  StepScope(Hook& hook, Step step);
  ~StepScope();
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  // Whether anything, and whether this tensor, is saved at this step. Ask before computing a tensor
  // that nothing else needs; saving one that is not wanted costs little and does nothing.
  bool is_wanted() const { return is_open() && hook_.is_step_wanted(); }
  bool wants(std::string_view name) { return is_open() && hook_.wants(name); }

  // As Hook::save: saved as the collections that hold the name want it. Copies before it returns.
  void save(std::string_view name, const View& tensor, Kind kind = Kind::automatic);
  void save(std::string_view name, const TensorView& tensor, Kind kind = Kind::automatic);
  // Without a copy: see own().
  void save_owned(std::string_view name, const Result<OwnedTensor>& tensor,
                  Kind kind = Kind::automatic);
  // Saved at every step; the last value of a step wins.
  void save_scalar(std::string_view name, double value, const ScalarOptions& options = {});
  // One axis of strings, into a collection: saved whenever the step saves anything.
  void save_strings(std::string_view name, std::span<const std::string> strings,
                    std::string_view collection = collection_keys::kDefault);

  // Ends the step now and gives its first error. Saving into it afterwards is an error.
  const Status& end();
  // The first error so far.
  const Status& status();

 private:
  void begun(Status status);
  // The hook is still in this step: nobody began another, and the hook was not closed.
  bool is_open() const { return open_ && !hook_.is_closed() && hook_.step().step == step_; }
  bool check_open(std::string_view name);
  void note(Status status);

  Hook& hook_;
  Step step_ = -1;
  bool open_ = false;
  bool asked_ = false;  // somebody has seen the error
  Status first_error_;
};

}  // namespace smd
