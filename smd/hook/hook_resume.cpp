// The part of the hook that lets an interrupted job go on: the state beside its checkpoints.

#include <fmt/format.h>

#include <algorithm>

#include "smd/hook/hook.h"
#include "smd/hook/run_state.h"

namespace smd {
namespace {

// Looking at the checkpoint folder may take this share of the training time.
constexpr int kStateShare = 100;
// While its files change, it may be more.
constexpr int kStirredShare = 10;
// A checkpoint waits so long for the steps before it, which takes milliseconds unless a disk hangs.
constexpr std::chrono::milliseconds kCheckpointPatience{5000};

}  // namespace

Status Hook::restore() {
  auto folder = checkpoint_folder(options_.environment.checkpoint_config_file_path());
  if (!folder.ok()) {
    options_.log->warning(fmt::format(
        "The checkpoint configuration cannot be used, so this job cannot be resumed. {}",
        folder.error().message));
    return {};
  }
  if (!*folder) return {};
  resume_file_ = std::make_unique<ResumeFile>(std::move(**folder));
  std::vector<std::string> problems;
  auto state = resume_file_->load(problems);
  if (!problems.empty()) {
    // The checkpoint may be further than what is left of the state, so nothing recorded is touched.
    const auto recorded = state_of_run(*storage_, *options_.config.layout);
    if (recorded.ok() && *recorded &&
        (!state || (*recorded)->latest_step_seen > state->latest_step_seen)) {
      const int64_t run = state ? state->training_run : 0;
      state = *recorded;
      state->training_run = run;
    }
    options_.log->warning(fmt::format(
        "The state of the interrupted job is damaged, so steps go on with {}, after all that is "
        "recorded. {}",
        state ? state->latest_step_seen + 1 : 0, problems.front()));
  }
  if (!state) return {};
  step_clock_.restore(state->latest_step_seen, state->mode_steps);
  last_saved_step_ = state->latest_step_saved;
  training_run_ = state->training_run + 1;
  return {};
}

ResumeState Hook::resume_state() const {
  ResumeState state{.training_run = training_run_,
                    .latest_step_saved = last_saved_step_,
                    .latest_step_seen = step_clock_.current().step};
  for (Mode mode : kModes) {
    if (step_clock_.mode_step(mode) >= 0) state.mode_steps[mode] = step_clock_.mode_step(mode);
  }
  return state;
}

void Hook::save_resume_state() {
  if (!step_clock_.started()) return;
  look_at_checkpoints();
  if (!checkpoint_waits_ || step_open_) return;
  checkpoint_waits_ = false;
  if (writer_) (void)writer_->wait_until_written(kCheckpointPatience);
}

void Hook::look_at_checkpoints() {
  // A look may have to wait; what it finds belongs to the step that touched it.
  if (resume_file_->stirred()) stirred_state_ = resume_state();
  const auto begun = options_.clock->now();
  if (begun < (stirred_state_ ? next_stirred_look_ : next_state_look_)) return;
  const ResumeState state = stirred_state_ ? *std::exchange(stirred_state_, {}) : resume_state();
  auto saved = resume_file_->update(state);
  if (saved.ok()) {
    checkpoint_waits_ = checkpoint_waits_ || *saved;
  } else {
    (void)guard_.handle("Saving the state for a restart", std::move(saved.error()));
  }
  const auto done = options_.clock->now();
  // One look that was slow by chance, because another process ran, must not delay the next for
  // long.
  look_cost_ = std::min(done - begun, 2 * look_cost_);
  next_stirred_look_ = done + kStirredShare * look_cost_;
  next_state_look_ = done + kStateShare * look_cost_;
}

}  // namespace smd
