#pragma once

// Records a training job: counts its steps, decides what is saved, snapshots or reduces tensors and
// hands them to the writer thread. Used by one thread at a time (the training thread), which it
// never makes wait for a file; only a checkpoint of a resumable job waits for the steps before it.
// Does nothing in forked children.
//
// Errors in what the caller passes come back; failures of ours never do: they are logged once, and
// recording goes on or stops (see guard.h). In strict mode they come back, too.

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/fork_guard.h"
#include "smd/base/json_fwd.h"
#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/collection/builtin.h"
#include "smd/collection/collection_set.h"
#include "smd/config/environment.h"
#include "smd/config/hook_config.h"
#include "smd/hook/bad_tensors.h"
#include "smd/hook/bill.h"
#include "smd/hook/budget.h"
#include "smd/hook/cost_meter.h"
#include "smd/hook/flight_recorder.h"
#include "smd/hook/flight_run.h"
#include "smd/hook/guard.h"
#include "smd/hook/inherited_configs.h"
#include "smd/hook/kind.h"
#include "smd/hook/known_results.h"
#include "smd/hook/late_batch.h"
#include "smd/hook/late_list.h"
#include "smd/hook/resume_state.h"
#include "smd/hook/save_plan.h"
#include "smd/hook/save_wish.h"
#include "smd/hook/scalar_board.h"
#include "smd/hook/second_reader.h"
#include "smd/hook/step_clock.h"
#include "smd/hook/stride_notice.h"
#include "smd/hook/ticket.h"
#include "smd/reduce/reduce.h"
#include "smd/storage/s3/options.h"
#include "smd/storage/spool.h"
#include "smd/storage/storage.h"
#include "smd/tensor/tensor_view.h"
#include "smd/writer/outputs/number_feed.h"
#include "smd/writer/writer.h"

namespace smd {

// Who this process is among those of the job.
struct Worker {
  std::string name = "worker_0";
  std::string chief = "worker_0";
  int count = 1;
};

// What an output beside the run may want to know of it.
struct OutputPlace {
  std::string run;     // what people call it: the last part of out_dir
  std::string worker;  // who writes
  std::shared_ptr<storage::Storage> storage;
};
using OutputMaker = std::function<Result<std::unique_ptr<Output>>(const OutputPlace& place)>;

struct HookOptions {
  HookConfig config;
  // Of the framework that the hook serves.
  std::vector<BuiltinCollection> builtin_collections = plain_collections();
  std::vector<std::string> default_collections = plain_default_collections();
  int64_t default_save_interval = kDefaultSaveInterval;

  // Asked at the first step, when distributed libraries have been set up. Empty: the environment.
  std::function<Worker()> identify;
  WriterOptions writer;
  std::shared_ptr<Log> log = stderr_log();
  std::shared_ptr<const Clock> clock = system_clock();
  Environment environment = Environment::of_process();
  // Empty: what config.out_dir names.
  std::shared_ptr<storage::Storage> storage;
  // For a place s3://bucket/prefix. The environment says the rest.
  storage::S3Options s3{.deadline = std::chrono::seconds(5)};
  // Gets the numbers of each saved step; ended when the hook closes.
  std::shared_ptr<NumberFeed> feed;
  // Further outputs, made when recording starts. They are told the collections of each tensor.
  std::vector<OutputMaker> outputs;
  // Saved besides what the configuration says.
  std::vector<SaveWish> wishes;
  // Empty: a new set. What it holds already stays as it is; built-in collections are added.
  std::shared_ptr<CollectionSet> collections;
};

struct ScalarOptions {
  bool sm_metric = false;
  std::optional<double> wall_secs;  // now, unless given
};

class Hook final {
 public:
  // invalid_argument: a wrong configuration. closed: the directory holds a finished job.
  static Result<std::unique_ptr<Hook>> create(HookOptions options);
  // Another worker of this process, such as a second device: it has the configuration and the
  // collections of this one, and steps and files of its own. Rules belong to this one alone.
  Result<std::unique_ptr<Hook>> create_twin(Worker worker) const;
  // What from_json() reads.
  static Result<Json> read_json(const std::string& path);
  // From a JSON file: the given one, else what the environment names. `options.config` is replaced.
  static Result<std::unique_ptr<Hook>> from_json(std::optional<std::string> path = {},
                                                 HookOptions options = {});
  // Closes.
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  const HookConfig& config() const { return options_.config; }
  CollectionSet& collections() { return *collections_; }
  // Shared with Python's CollectionManager.
  const std::shared_ptr<CollectionSet>& shared_collections() const { return collections_; }
  void set_collections(std::shared_ptr<CollectionSet> collections);
  // What collections without configs of their own use.
  const SaveConfig& save_config() const { return plan_options_.save_config; }
  const ReductionConfig& reduction_config() const { return plan_options_.reduction_config; }
  // Names of the collections to save, defaults included.
  const std::vector<std::string>& include_collections() const {
    return plan_options_.include_collections;
  }

  // The mode of the steps that begin from now on.
  void set_mode(Mode mode);
  Mode mode() const { return step_clock_.mode(); }

  // Ends the current step and begins the next. Costs one comparison when nothing is to be saved.
  Status begin_step();
  // Several steps that the program runs as one: what any of them saves is saved at the last.
  Status begin_steps(int64_t count);
  // The step that begin_step() began did not happen: the next one gets its number. Nothing happens
  // if something has been saved in it.
  void cancel_step();
  // With a number of the caller's, greater than the last.
  Status begin_step(Step step);
  // Ends the current step early, so that readers see it. Saving goes on with the next step; scalars
  // that are saved before it begins belong to it.
  Status end_step();

  const StepInfo& step() const { return step_clock_.current(); }
  Step mode_step(Mode mode) const { return step_clock_.mode_step(mode); }
  std::optional<Step> last_saved_step() const { return last_saved_step_; }
  int64_t training_run() const { return training_run_; }

  // Something is saved at this step. Also true for a step that is watched for a NaN, or that the
  // flight recorder keeps.
  bool is_step_wanted() const { return recording_ && (saving_ || watching_); }
  // Something is saved at this step.
  bool is_step_saved() const { return recording_ && saving_; }
  // Whether the next step of the current mode is going to be saved; nullopt: not known yet.
  std::optional<bool> is_next_step_saved() const { return is_saved_within(1); }
  // The same for any of the next steps.
  std::optional<bool> is_saved_within(int64_t count) const;
  // This tensor is saved or watched at this step.
  bool wants(std::string_view name);
  bool wants(Ticket& ticket);
  // A NaN in it starts saving.
  bool is_watched(std::string_view name) const {
    return is_step_wanted() && watching_ && plan_ && plan_->is_watched(step().mode, name);
  }
  // What is wanted of it at this step; empty: nothing. For callers that reduce it themselves.
  Action wanted(std::string_view name);
  // The same. It joins the collection of its kind.
  Action wanted(Ticket& ticket);
  bool is_collection_active(std::string_view name) const;
  // At some step: it is included, or a rule or a request wishes it.
  bool may_save(std::string_view collection) const;
  // Active, or looked at by the flight recorder or the search for the first bad tensor.
  bool is_collection_observed(std::string_view name) const;

  // A tensor that the model offers: saved as its collections want it.
  Status save(std::string_view name, const TensorView& tensor, Kind kind = Kind::automatic);
  // The same, with the name and the kind of the ticket. `content` is one of next_content() that
  // stands for these elements: what was found of them is not searched again. 0: nobody knows.
  Status save(Ticket& ticket, const TensorView& tensor, uint64_t content = 0);
  uint64_t next_content() { return known_.next_content(); }
  // Several at once, in their order. Where they are large, a second thread reduces some of them.
  struct Listed {
    Ticket* ticket = nullptr;
    TensorView tensor;
  };
  Status save_list(std::span<const Listed> list);
  // The same without a copy: nobody changes the memory any more.
  Status save_owned(std::string_view name, const OwnedTensor& tensor, Kind kind = Kind::automatic);
  // One tensor under several names: each is saved as its collections want it, and the values are
  // stored once.
  Status save_named(std::span<const std::string> names, const TensorView& tensor);
  // A tensor that belongs to many steps, such as the mean of an epoch: saved at the current one,
  // although the collection of its kind is not due there; not if that has ended.
  Status save_undue(std::string_view name, const TensorView& tensor, Kind kind);
  // Reductions of a tensor that the caller has computed, where the memory is not ours to read.
  // Those that nobody wants are left out. Names are those of Reduction::name().
  Status save_reductions(std::string_view name,
                         std::span<const std::pair<std::string, Number>> values);
  // What wanted() says of tensors that a device is still reading, but for their elements: the
  // writer thread waits for it. What is looked for in them is found some steps later. `index` is
  // that of the tensor in the list.
  struct LateListed {
    Ticket* ticket = nullptr;
    size_t index = 0;
  };
  Status save_late(std::span<const LateListed> tensors, std::shared_ptr<LateList> list);
  // The elements of a tensor that are still being copied, if they are wanted: the writer thread
  // waits for them. The owner of `tensor` keeps `memory`.
  Status save_late_values(Ticket& ticket, const OwnedTensor& tensor,
                          std::shared_ptr<LateMemory> memory);
  // Whether values of this size, that are wanted, could be handed over now. False only with
  // Overflow::drop: who asks before a copy is made says leave_out() of the tensor instead.
  bool has_room(size_t bytes) const;
  void leave_out(std::string_view name, size_t bytes);
  // Looks at those that have come; begin_step() does so, too.
  void look_at_late() { settle_late(false); }
  // The shape of such a tensor, if it is wanted.
  Status save_shape(std::string_view name, std::span<const int64_t> shape);
  // A tensor that the user saves by hand into collections, included or not: saved whenever the step
  // saves anything or one of these collections is due.
  Status save_tensor(std::string_view name, const TensorView& tensor,
                     std::span<const std::string> collections);
  Status save_strings(std::string_view name, std::span<const std::string_view> strings,
                      std::span<const int64_t> shape, std::span<const std::string> collections);
  // Whether save_tensor would save anything now.
  bool wants_tensor(std::span<const std::string> collections);
  // Saved at every step. Before the first step: with the first step. The last value of a step wins.
  Status save_scalar(std::string_view name, const Number& value, const ScalarOptions& options = {});
  Status save_scalar(std::string_view name, double value, const ScalarOptions& options = {});

  // Saves the values of these collections at the next `steps` steps of the present mode, too.
  // invalid_argument: there is no such collection.
  Status save_more(std::span<const std::string> collections, int64_t steps);

  // Writes the collections file now, before the first step is saved or after it has changed.
  Status write_collections();

  // What recording has cost so far. Callers that do work of their own for a saved step put it
  // between enter_cost() and leave_cost(), which may be nested.
  Bill bill() const;
  void enter_cost() { meter_.enter(); }
  void leave_cost() { meter_.leave(); }

  // Writes what the flight recorder holds when the current step is over, or now if there is none:
  // as steps of the run where that is possible, else as a run in the folder `flight`. `reason` goes
  // to the log and to findings/. invalid_argument: there is no recorder.
  Status dump_flight_recorder(std::string_view reason);
  // The same for a program that may end before the current step is over, or go on with it: steps
  // that are over are written now, and the current one follows when it is.
  Status dump_ended_steps(std::string_view reason);
  const FlightRecorder* flight_recorder() const { return recorder_ ? &*recorder_ : nullptr; }
  // Waits until everything that was handed over is in files; false: not within `most`.
  bool wait_until_written(std::chrono::milliseconds most);

  // The name of the first tensor of the training that is not finite, until the end of its step.
  // Whoever knows where it was made says so before that.
  std::optional<std::string> first_bad_tensor() const;
  void set_call_site(CallSite site) { bad_.set_call_site(std::move(site)); }

  // Ends the last step, writes the collections and the end marker, and waits for the writer and,
  // for at most SMDEBUG_SPOOL_DRAIN_SECS, until everything has reached an object store.
  // The first error of the hook's life, if any. The second call does nothing.
  struct CloseOptions {
    bool at_exit = false;  // the process is ending: do not wait for other workers for long
    bool goes_on = false;  // another hook continues the job: no end marker
  };
  Status close(const CloseOptions& options);
  Status close() { return close({}); }
  bool is_closed() const { return closed_; }
  bool is_strict() const { return guard_.strict(); }

  // To the log, unless it was said before.
  void warn_once(std::string message);

  const Worker& worker() const { return worker_; }
  bool is_recording() const { return recording_ && fork_guard_.in_owner(); }
  // Steps that the writer has published: they are never lost.
  int64_t committed_steps() const { return writer_ ? writer_->committed_steps() : 0; }
  size_t peak_queue_bytes() const { return writer_ ? writer_->peak_queue_bytes() : 0; }

 private:
  static constexpr Step kNever = std::numeric_limits<Step>::max();

  explicit Hook(HookOptions options);
  Status initialize();
  Status restore();
  void resolve_tensorboard_dir();
  // Before the first step.
  Status start();
  std::unique_ptr<Sink> make_sink(Durability durable) const;
  std::vector<std::unique_ptr<Output>> make_outputs();
  Result<std::unique_ptr<Output>> make_tensorboard_output();
  Status prepare();
  Status begin(const StepInfo& step, Step first_mode_step);
  void finish_step();
  // Apart, so that a step that saves nothing stays short.
  void finish_wanted_step();
  void activate(const StepInfo& step, Step first_mode_step, Step& next);
  void begin_observed(const StepInfo& step);
  void open_step();
  void export_collections();
  // If there is a new checkpoint: it must not be found without the steps that led to it.
  void save_resume_state();
  void look_at_checkpoints();
  ResumeState resume_state() const;
  void report_writer_error();
  Status close_spool();
  void report_unseen_watches();
  Status check_usable() const;

  Status offer(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
               Kind kind);
  Status offer_wanted(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                      Kind kind);
  void warn_of_early(std::string_view name);
  // Whether something is to be done with tensors now.
  bool takes(std::string_view name);
  // What SavePlan::key() is now that collections may have changed.
  uint64_t plan_key();
  // Finds out what is wanted under its name, unless that is known.
  void look_up(Ticket& ticket);
  // Does what is wanted of a tensor. `number`: of its name in the flight recorder, if it is known.
  Status record(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                const Action& action, std::optional<uint32_t> number = {});
  // The same without its values; whether they are wanted.
  Result<bool> record_numbers(std::string_view name, const TensorView& tensor, const Action& action,
                              std::optional<uint32_t> number = {});
  Status record_values(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                       std::span<const std::string_view> other_names = {});
  Status watch(std::string_view name, const TensorView& tensor);
  // Reduces a tensor for the flight recorder and the search for the first bad one, of which `seen`
  // is wanted, together with what is to be saved of it.
  Status observe(std::string_view name, const TensorView& tensor, const Action& seen,
                 const Action& saved, std::optional<uint32_t> number = {});
  Status observe(std::string_view name, const TensorView& tensor);
  class AtHand;
  // Whether a second thread may reduce tensors of the list; then jobs_ holds what is wanted of
  // them.
  bool prepare_jobs(std::span<const Listed> list);
  // Finds what is requested of the tensor at hand, for reduced_.
  Status reduce_at_hand(const TensorView& tensor, const ReductionRequest& request);
  Status look_for_bad(std::string_view name, const TensorView& tensor);
  void report_bad_tensor();
  // Looks at the results of late tensors in their order; those that are not there yet stay, unless
  // `wait`.
  void settle_late(bool wait);
  // Results that have come, or are waited for now.
  void look_at(const StepInfo& step, LateBatch& batch);
  void see_late(const StepInfo& step, std::string_view name, const LateResults& found);
  LateItem late_item(Ticket& ticket);
  // Of the step that ends.
  void end_late_step();
  bool is_bad_step_complete() const;
  void trigger_late(const StepInfo& step, std::string_view name, bool nan);
  ReductionSet recorded_reductions(const Action& seen) const;
  void store_reductions(const ReductionSet& wanted);
  // Of the flight recorder; the current step is over, but not handed over yet.
  enum class Dumped { all_steps, ended_steps };
  void write_flight_recorder(Dumped which = Dumped::all_steps);
  FlightRun& flight_run();
  bool is_only_worker() const;
  void find_stretched_collections();
  // A step that the budget decides on is over.
  void settle_budget();
  void use_stride(int64_t stride);
  Status watch_scalar(std::string_view name, const Number& value);
  void warn_of_output(const Error& error);
  // Hands a number to what wants the numbers of a step beside the run.
  void emit(SavedScalar scalar);
  void warn_of_metric(std::string_view name, bool nan);
  void emit_mean(std::string_view name, const TensorView& tensor, const Action& action);
  void emit_histogram(std::string_view name, std::string_view collection, double wall_secs);
  Status reduce_into_step(std::string_view name, const TensorView& tensor, const Action& action,
                          std::optional<uint32_t> number);
  Result<Action> custom_action(std::string_view name, std::span<const std::string> collections);
  // Before anything of a tensor is handed over.
  void tell_membership(std::string_view name);
  bool user_wants_tensor(std::span<const std::string> collections);
  void join_kind(std::string_view name, Kind kind);
  void join_kind(Ticket& ticket);
  Status check_name(Ticket& ticket);
  // The same and what every step is looked at for.
  Action with_observed(Action action, const Action& seen) const;

  HookOptions options_;
  std::shared_ptr<storage::Storage> storage_;
  std::shared_ptr<storage::Spool> spool_;  // storage_, if it is one
  std::shared_ptr<storage::Spool> tensorboard_spool_;
  double segment_secs_ = 0;    // see Environment::segment_secs
  uint64_t least_micros_ = 0;  // see PackedSinkOptions
  std::shared_ptr<CollectionSet> collections_;
  SavePlanOptions plan_options_;
  std::unique_ptr<ResumeFile> resume_file_;  // of a job that may be interrupted
  std::unique_ptr<Writer> writer_;           // none in processes that do not save
  Guard guard_;
  ForkGuard fork_guard_;
  StepClock step_clock_;
  Worker worker_;

  std::optional<SavePlan> plan_;
  uint64_t planned_revision_ = 0;
  uint64_t seen_changes_ = 0;  // ChangeCount that tickets know of
  std::array<Step, kModes.size()>
      next_active_{};  // the first mode step at which the plan saves something
  std::array<std::string, kModes.size()>
      triggered_;  // the tensor whose NaN makes the next step a saved one

  std::string step_trigger_;  // the tensor whose NaN made this step a saved one

  bool recording_ = true;  // false: closed, disabled, or a process that does not save
  bool closed_ = true;     // until it is initialised
  bool started_ = false;
  bool saving_ = false;      // the plan saves something at this step
  bool watching_ = false;    // tensors are watched for NaN at this step
  bool step_ended_ = false;  // by end_step(): the step takes nothing any more
  bool step_open_ = false;   // the writer has begun this step
  // Revision and name count of the collections when they were last written.
  std::optional<std::pair<uint64_t, size_t>> exported_;
  std::optional<Step> last_saved_step_;
  int64_t training_run_ = 0;
  // When to look at the checkpoints for a reason, and without one.
  std::chrono::steady_clock::time_point next_stirred_look_{};
  std::chrono::steady_clock::time_point next_state_look_{};
  std::chrono::steady_clock::duration look_cost_ = std::chrono::milliseconds(1);
  bool checkpoint_waits_ = false;             // for the steps before it to be written
  std::optional<ResumeState> stirred_state_;  // when the checkpoints were last touched

  CostMeter meter_;
  Bill counted_;  // without times
  std::optional<Budget> budget_;
  InheritedConfigs inherited_;
  StrideNotice next_stride_;  // where it changes, if stride_from_ says so
  Step stride_from_;          // never, unless a change is pending
  Step settled_step_ = 0;
  bool stretched_step_ = false;  // the budget decides on this step

  std::optional<FlightRecorder> recorder_;
  // Reductions of the last saved steps, for the report of the first bad tensor. Without a recorder
  // only, which knows more.
  static constexpr FlightRecorderOptions kRecent{.steps = 4, .max_bytes = size_t{16} << 20};
  FlightRecorder recent_{kRecent};
  bool remembers_saved() const { return !recorder_ && bad_.is_looking(); }
  void remember(std::string_view name, std::optional<uint32_t> number, double wall_secs);
  std::unique_ptr<FlightRun> flight_run_;
  std::string dump_reason_;  // empty: nothing is to be dumped
  int dumps_ = 0;
  BadTensors bad_;
  // Elements that the flight recorder keeps.
  struct LateRaw {
    std::string name;
    OwnedTensor tensor;
    std::shared_ptr<LateMemory> memory;
    double wall_secs = 0;
  };
  // One of the two; none: the end of the step.
  struct Late {
    StepInfo step;
    std::shared_ptr<LateBatch> batch;
    std::optional<LateRaw> raw;
  };
  std::deque<Late> late_;
  bool observes_ = false;         // every step is looked at
  bool reduced_already_ = false;  // the tensor at hand: reduced_ holds all that is wanted of it
  uint64_t content_ = 0;          // of the tensor at hand; 0: not known

  ScalarBoard scalars_;
  SecondReader second_reader_;
  std::vector<SecondReader::Job> jobs_;
  const SecondReader::Job* done_ = nullptr;  // by it, for the tensor at hand
  KnownResults known_;
  ReductionResult scratch_;                     // of tensors whose content is not known
  const ReductionResult* reduced_ = &scratch_;  // of the tensor at hand
  std::vector<StoredReduction> stored_;
  std::vector<std::string> unseen_watches_;  // until the first step is over
  std::vector<std::string> seen_names_;
  // Whether a watched tensor held a NaN when it was last seen.
  std::array<std::map<std::string, bool, std::less<>>, kModes.size()> nan_before_;
  std::set<std::string> warned_;
  // Names whose collections the outputs know, as of a revision.
  std::set<std::string, std::less<>> told_;
  uint64_t told_revision_ = 0;
  bool tells_membership_ = false;
};

}  // namespace smd
