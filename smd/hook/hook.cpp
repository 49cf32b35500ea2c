#include "smd/hook/hook.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/base/json.h"
#include "smd/base/nearest.h"
#include "smd/config/json_value.h"
#include "smd/format/file_name.h"
#include "smd/format/tensor_record.h"
#include "smd/hook/destination.h"
#include "smd/hook/findings.h"
#include "smd/hook/named_folder.h"
#include "smd/hook/run_state.h"
#include "smd/hook/stored_name.h"
#include "smd/hook/tensorboard_output.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"
#include "smd/writer/outputs/metrics_file.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {
namespace {

constexpr Step kNever = std::numeric_limits<Step>::max();
constexpr std::string_view kWhenNan = "smdebug/when_nan";
// Looking at the checkpoint folder may take this share of the training time.
constexpr int kStateShare = 100;
// While its files change, it may be more.
constexpr int kStirredShare = 10;
// A checkpoint waits so long for the steps before it, which takes milliseconds unless a disk hangs.
constexpr std::chrono::milliseconds kCheckpointPatience{5000};
// The platform refuses metrics that are older than this, or further ahead.
constexpr double kOldestMetricSecs = 14 * 86400;
constexpr double kNewestMetricSecs = 2 * 3600;

void add_unique(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

}  // namespace

Hook::Hook(HookOptions options)
    : options_(std::move(options)),
      storage_(options_.storage),
      collections_(options_.collections ? options_.collections : std::make_shared<CollectionSet>()),
      guard_(options_.environment.strict().ok() && *options_.environment.strict(), options_.log),
      meter_(options_.clock),
      stride_from_(kNever) {}

Result<std::unique_ptr<Hook>> Hook::create(HookOptions options) {
  std::unique_ptr<Hook> hook(new Hook(std::move(options)));
  SMD_RETURN_IF_ERROR(hook->initialize());
  hook->closed_ = false;
  return hook;
}

Result<std::unique_ptr<Hook>> Hook::create_twin(Worker worker) const {
  HookOptions options = options_;
  options.identify = [worker] { return worker; };
  options.storage = storage_;
  options.collections = collections_;
  options.feed = nullptr;
  options.outputs.clear();
  options.wishes.clear();
  // The collections have these already.
  options.config.include_collections = plan_options_.include_collections;
  options.config.include_regex.clear();
  options.config.exclude_regex.clear();
  options.config.collections.clear();
  options.config.save_all = false;
  return create(std::move(options));
}

Result<Json> Hook::read_json(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  SMD_TRY(const Bytes text, storage::read_all(*storage::local_storage(folder),
                                              std::string_view(path).substr(slash + 1)));
  return parse_json(as_text(text), path);
}

Result<std::unique_ptr<Hook>> Hook::from_json(std::optional<std::string> path,
                                              HookOptions options) {
  const std::string file = path.value_or(options.environment.config_file_path());
  SMD_TRY(const Json json, read_json(file));
  SMD_TRY(ParsedHookConfig parsed,
          parse_hook_config(json, {.save_interval = options.default_save_interval}));
  for (const std::string& warning : parsed.warnings) options.log->warning(warning);
  if (const Json* rules = json_member(json, "rules");
      rules != nullptr && !rules->empty() && options.outputs.empty()) {
    options.log->warning(fmt::format(
        "The rules of the configuration are not evaluated, as this program has none: {}", file));
  }
  options.config = std::move(parsed.config);
  return create(std::move(options));
}

Hook::~Hook() {
  if (fork_guard_.in_owner()) {
    (void)close();
  } else {
    (void)writer_.release();  // its thread does not exist here and its files are not ours
  }
}

Status Hook::initialize() {
  HookConfig& config = options_.config;
  SMD_RETURN_IF_ERROR(options_.environment.strict());
  SMD_RETURN_IF_ERROR(config.check_limits());
  config.out_dir = options_.environment.expand_home(config.out_dir);
  resolve_tensorboard_dir();
  Destination place{.storage = storage_, .spool = nullptr, .remote = nullptr};
  if (!storage_) {
    SMD_TRY(place, open_destination(config.out_dir, {.environment = options_.environment,
                                                     .s3 = options_.s3,
                                                     .writes = !config.dry_run}));
    storage_ = place.storage;
    spool_ = place.spool;
  }
  SMD_TRY(const bool reached, check_unfinished(*storage_, *options_.log));
  if (!config.layout) {
    SMD_TRY(config.layout, options_.environment.layout());
  }
  if (config.layout == RunLayout::packed) {
    SMD_TRY(segment_secs_, options_.environment.segment_secs());
  }
  if (reached && !config.dry_run) {  // whoever does not answer now would make us wait again
    SMD_RETURN_IF_ERROR(check_layout(place, *config.layout));
    if (config.layout == RunLayout::packed) least_micros_ = newest_incarnation(place) + 1;
  }

  std::vector<std::string>& include = plan_options_.include_collections;
  for (const std::string& name : config.include_collections) add_unique(include, name);
  for (const std::string& name : options_.default_collections) add_unique(include, name);
  if (!config.include_regex.empty()) add_unique(include, collection_keys::kDefault);
  config.save_all = config.save_all || std::find(include.begin(), include.end(),
                                                 collection_keys::kAll) != include.end();
  if (config.save_all) add_unique(include, collection_keys::kAll);

  SMD_RETURN_IF_ERROR(add_builtin_collections(*collections_, options_.builtin_collections));
  for (const BuiltinCollection& builtin : options_.builtin_collections) {
    plan_options_.builtin_collections.push_back(builtin.name);
    if (builtin.raw_only) plan_options_.raw_only_collections.push_back(builtin.name);
  }
  SMD_TRY(const auto by_regex, collections_->create(collection_keys::kDefault));
  SMD_TRY(const auto everything, collections_->create(collection_keys::kAll));
  for (const std::string& pattern : config.include_regex)
    SMD_RETURN_IF_ERROR(by_regex->include(pattern));
  // A twin finds it there.
  if (config.save_all && everything->include_regex().empty()) {
    SMD_RETURN_IF_ERROR(everything->include(".*"));
  }
  for (const std::string& pattern : config.exclude_regex) {
    SMD_RETURN_IF_ERROR(by_regex->exclude(pattern));
    SMD_RETURN_IF_ERROR(everything->exclude(pattern));
  }
  // Their tensors come with their kind; the first one must find its collection in the plan.
  for (const std::string& name : include) {
    if (is_known_collection(name) && name != collection_keys::kScalars) {
      SMD_RETURN_IF_ERROR(collections_->create(name));
    }
  }
  for (const CollectionConfig& listed : config.collections) {
    SMD_TRY(const auto collection, collections_->create(listed.name));
    for (const auto& pattern : listed.include_regex)
      SMD_RETURN_IF_ERROR(collection->include(pattern));
    for (const auto& pattern : listed.exclude_regex)
      SMD_RETURN_IF_ERROR(collection->exclude(pattern));
    if (listed.save_config) {
      collection->set_save_config(std::make_shared<SaveConfig>(*listed.save_config));
      if (!listed.save_config_is_own) inherited_.note(*collection);
    }
    if (listed.reduction_config) {
      collection->set_reduction_config(std::make_shared<ReductionConfig>(*listed.reduction_config));
    }
    if (listed.save_histogram) collection->set_save_histogram(*listed.save_histogram);
  }

  SMD_TRY(plan_options_.save_config,
          SaveConfig::broadcast({.save_interval = options_.default_save_interval}));
  if (config.save_config) {
    SaveConfig own = *config.save_config;
    own.merge_defaults(plan_options_.save_config);
    plan_options_.save_config = std::move(own);
  }
  if (config.reduction_config) plan_options_.reduction_config = *config.reduction_config;
  plan_options_.shows_histograms = config.tensorboard_dir.has_value();
  SMD_RETURN_IF_ERROR(give_patterns(options_.wishes, *collections_));
  plan_options_.wishes = std::move(options_.wishes);
  if (config.max_overhead) {
    budget_.emplace(
        BudgetOptions{.max_overhead = *config.max_overhead, .max_interval = config.max_interval});
    // Nobody said how often: as often as the budget allows.
    if (!config.save_config) {
      SMD_TRY(plan_options_.stretched_save_config, SaveConfig::broadcast({.save_interval = 1}));
    }
  }
  if (config.flight_recorder > 0) {
    recorder_.emplace(
        FlightRecorderOptions{.steps = config.flight_recorder,
                              .raw = config.flight_recorder_raw,
                              .max_bytes = static_cast<size_t>(config.flight_recorder_bytes)});
  }
  observes_ = recorder_ || config.first_bad_tensor;
  return restore();
}

Status Hook::save_more(std::span<const std::string> collections, int64_t steps) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording() || !plan_) return {};
  const Mode mode = step_clock_.mode();
  const Step first = step_clock_.mode_step(mode) + 1;
  SMD_TRY(const SaveConfig window, next_steps(mode, first, steps));
  for (const std::string& name : collections) {
    const auto found = collections_->get(name);
    if (!found.ok()) return Error{ErrorCode::invalid_argument, found.error().message};
  }
  // Windows that are over.
  std::erase_if(plan_options_.wishes, [&](const SaveWish& wish) {
    return wish.save_config && std::ranges::none_of(kModes, [&](Mode m) {
             return wish.save_config->next_save(m, step_clock_.mode_step(m) + 1).has_value();
           });
  });
  for (const std::string& name : collections) {
    plan_options_.wishes.push_back({.collection = name, .save_config = window, .raw = true});
  }
  planned_revision_ = ~uint64_t{0};  // the next step makes a new plan
  return {};
}

void Hook::resolve_tensorboard_dir() {
  HookConfig& config = options_.config;
  const Environment& environment = options_.environment;
  const auto named = read_named_folder(environment.tensorboard_config_file_path());
  if (!named.ok()) {
    options_.log->warning(
        fmt::format("The TensorBoard configuration cannot be used. {}", named.error().message));
  } else if (*named) {
    config.tensorboard_dir = (*named)->folder.value_or(std::string(kDefaultTensorboardDir));
  }
  if (config.tensorboard_dir) {
    config.tensorboard_dir = environment.expand_home(*config.tensorboard_dir);
  } else if (config.export_tensorboard) {
    config.tensorboard_dir = config.out_dir + "/tensorboard";
  }
}

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

void Hook::set_collections(std::shared_ptr<CollectionSet> collections) {
  collections_ = std::move(collections);
  plan_.reset();
}

Status Hook::start() {
  if (options_.identify) {
    worker_ = options_.identify();
  } else {
    SMD_TRY(const auto rank, options_.environment.process_rank());
    if (rank) worker_ = {.name = worker_name(rank->rank), .count = rank->size};
  }
  SMD_RETURN_IF_ERROR(check_worker(worker_.name));
  const bool all = options_.config.include_workers == IncludeWorkers::all;
  SMD_RETURN_IF_ERROR(collections_->set_num_workers(all ? worker_.count : 1));
  started_ = true;
  if (!all && worker_.name != worker_.chief) {
    recording_ = false;
    return {};
  }
  if (options_.config.dry_run) return {};
  // Closing the spool does more than the sink's sync could, and with a longer patience.
  const bool at_close = spool_ && options_.config.durable == Durability::close;
  const Durability durable = at_close ? Durability::off : options_.config.durable;
  writer_ = std::make_unique<Writer>(make_sink(durable), options_.writer, make_outputs());
  return {};
}

std::unique_ptr<Sink> Hook::make_sink(Durability durable) const {
  const std::string worker = worker_to_file_name(worker_.name);
  const bool exclusive = worker_.count == 1 && !spool_;
  if (options_.config.layout == RunLayout::packed) {
    return packed_sink(
        {.storage = storage_,
         .worker = worker,
         .exclusive = exclusive,
         .durable = durable,
         .spooled = spool_ != nullptr,
         .max_segment_age = std::chrono::milliseconds(static_cast<int64_t>(segment_secs_ * 1000)),
         .least_micros = least_micros_,
         .clock = options_.clock});
  }
  return original_sink(
      {.storage = storage_, .worker = worker, .exclusive = exclusive, .durable = durable});
}

Result<std::unique_ptr<Output>> Hook::make_tensorboard_output() {
  // Curves of several workers in one directory would be one curve.
  std::string folder = *options_.config.tensorboard_dir;
  if (worker_.name != worker_.chief) folder += "/" + worker_to_file_name(worker_.name);
  SMD_TRY(Destination place,
          open_destination(folder, {.environment = options_.environment, .s3 = options_.s3}));
  tensorboard_spool_ = place.spool;
  return tensorboard_output({.storage = std::move(place.storage),
                             .writer = summary_writer_name(),
                             .grows = place.spool == nullptr,
                             .clock = options_.clock});
}

std::vector<std::unique_ptr<Output>> Hook::make_outputs() {
  std::vector<std::unique_ptr<Output>> outputs;
  if (options_.config.tensorboard_dir) {
    auto made = make_tensorboard_output();
    if (made.ok()) {
      outputs.push_back(std::move(*made));
    } else {
      warn_of_output(made.error());
    }
  }
  if (options_.environment.in_sagemaker()) {
    outputs.push_back(
        metrics_file({.folder = options_.environment.metrics_directory(), .pid = ::getpid()}));
  }
  if (options_.feed) outputs.push_back(feed_output(options_.feed, worker_.name));
  const std::string& dir = options_.config.out_dir;
  const size_t last = dir.find_last_not_of('/');
  const std::string named = last == std::string::npos ? dir : dir.substr(0, last + 1);
  const OutputPlace place{
      .run = named.substr(named.rfind('/') + 1), .worker = worker_.name, .storage = storage_};
  for (const OutputMaker& make : options_.outputs) {
    auto made = make(place);
    if (made.ok()) {
      outputs.push_back(std::move(*made));
      tells_membership_ = true;
    } else {
      warn_of_output(made.error());
    }
  }
  return outputs;
}

Status Hook::prepare() {
  if (!started_) SMD_RETURN_IF_ERROR(start());
  settle(plan_options_.wishes, *collections_, plan_options_.save_config,
         options_.config.save_config.has_value());
  std::vector<std::string> warnings;
  const bool first = !plan_.has_value();
  if (budget_) find_stretched_collections();
  SMD_TRY(plan_, SavePlan::build(*collections_, plan_options_, warnings));
  for (std::string& warning : warnings) warn_once(std::move(warning));
  if (first) unseen_watches_ = plan_->watched_names();
  if (budget_) {
    plan_->set_stride(budget_->stride(), options_.config.max_interval);
    for (const auto& name : plan_options_.stretched_collections) {
      if (const auto collection = collections_->find(name)) inherited_.note(*collection);
    }
  }
  planned_revision_ = collections_->revision();
  for (Mode mode : kModes) {
    next_active_[index_of(mode)] =
        plan_->next_active(mode, step_clock_.mode_step(mode) + 1).value_or(kNever);
  }
  return {};
}

void Hook::set_mode(Mode mode) {
  step_clock_.set_mode(mode);
  // Often a checkpoint was just made, and a long evaluation begins.
  if (resume_file_ && recording_ && fork_guard_.in_owner()) save_resume_state();
}

Status Hook::check_usable() const {
  if (!closed_) return {};
  return Error{ErrorCode::closed, "The hook is closed: nothing can be saved any more."};
}

Status Hook::begin_step() {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!fork_guard_.in_owner()) return {};
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  const StepInfo step = step_clock_.advance();
  return begin(step, step.mode_step);
}

Status Hook::begin_steps(int64_t count) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (count < 1) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} steps cannot be begun.", count)};
  }
  if (!fork_guard_.in_owner()) return {};
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  const Step first = step_clock_.advance().mode_step;
  for (int64_t i = 1; i < count; ++i) step_clock_.advance();
  if (recording_) counted_.steps += count - 1;
  return begin(step_clock_.current(), first);
}

void Hook::cancel_step() {
  if (closed_ || !fork_guard_.in_owner() || step_open_ || step_ended_ || !scalars_.empty()) return;
  const Mode mode = step().mode;
  step_clock_.retreat();
  step_ended_ = step_clock_.started();
  saving_ = false;
  watching_ = false;
  if (!recording_ || !plan_) return;
  counted_.steps -= 1;
  next_active_[index_of(mode)] =
      plan_->next_active(mode, step_clock_.mode_step(mode) + 1).value_or(kNever);
}

Status Hook::begin_step(Step step) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!fork_guard_.in_owner()) return {};
  if (step <= step_clock_.current().step) return step_clock_.advance_to(step).error();
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  SMD_TRY(const StepInfo info, step_clock_.advance_to(step));
  return begin(info, info.mode_step);
}

Status Hook::begin(const StepInfo& step, Step first_mode_step) {
  step_ended_ = false;
  if (!recording_) return {};
  ++counted_.steps;
  if (!meter_.started()) meter_.start();
  Step& next = next_active_[index_of(step.mode)];
  if (!plan_ || collections_->revision() != planned_revision_) {
    if (Status prepared = prepare(); !prepared.ok()) {
      recording_ = recording_ && plan_.has_value();
      return prepared;
    }
    if (!recording_) return {};
    // prepare() looked beyond this step.
    next = plan_->next_active(step.mode, first_mode_step).value_or(kNever);
  }
  std::string& triggered = triggered_[index_of(step.mode)];
  saving_ = false;
  stretched_step_ = false;
  watching_ = observes_ || plan_->watches_anything(step.mode);
  if (!step_trigger_.empty()) step_trigger_.clear();
  if (step.step >= stride_from_) {
    use_stride(next_stride_.stride);
    next = plan_->next_active(step.mode, first_mode_step).value_or(kNever);
  }
  if (observes_) begin_observed(step);
  if (step.mode_step < next && triggered.empty()) return {};
  activate(step, first_mode_step, next);
  return {};
}

void Hook::begin_observed(const StepInfo& step) {
  plan_->observe(step.mode);
  if (recorder_) recorder_->begin_step(step);
}

void Hook::activate(const StepInfo& step, Step first_mode_step, Step& next) {
  const CostMeter::Scope cost(meter_);
  plan_->activate(step.mode, first_mode_step, step.mode_step);
  step_trigger_ = std::exchange(triggered_[index_of(step.mode)], {});
  if (!step_trigger_.empty()) plan_->trigger(step.mode, step_trigger_);
  saving_ = plan_->any_active();
  if (saving_ && remembers_saved()) recent_.begin_step(step);
  stretched_step_ = budget_ && plan_->any_stretched_active();
  next = plan_->next_active(step.mode, step.mode_step + 1).value_or(kNever);
}

std::optional<bool> Hook::is_saved_within(int64_t count) const {
  if (!plan_ || collections_->revision() != planned_revision_) return std::nullopt;
  const auto mode = index_of(step_clock_.mode());
  const Step last = step_clock_.mode_step(step_clock_.mode()) + count;
  return is_recording() && (last >= next_active_[mode] || !triggered_[mode].empty());
}

Status Hook::end_step() {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording()) return {};
  finish_step();
  if (resume_file_) save_resume_state();
  step_ended_ = step_clock_.started();
  saving_ = false;
  watching_ = false;
  return {};
}

void Hook::open_step() {
  if (step_open_ || !writer_) return;
  writer_->begin_step(step_clock_.current());
  step_open_ = true;
}

void Hook::finish_step() {
  if (!step_clock_.started() || step_ended_ || !plan_) return;
  if (!unseen_watches_.empty()) report_unseen_watches();
  if (!is_step_wanted() && !step_open_ && scalars_.empty() && dump_reason_.empty()) return;
  finish_wanted_step();
}

void Hook::finish_wanted_step() {
  const CostMeter::Scope cost(meter_);
  if (bad_.is_looking()) bad_.end_step(step().mode);
  if (bad_.is_found()) report_bad_tensor();
  if (recorder_ && saving_) recorder_->mark_saved();
  if (!dump_reason_.empty()) write_flight_recorder();
  if (saving_) {
    for (std::string& problem : plan_->take_problems()) warn_once(std::move(problem));
  }
  if (!scalars_.empty()) {
    static constexpr int64_t kOne[] = {1};
    open_step();
    scalars_.drain([&](const ScalarBoard::Scalar& scalar) {
      if (!writer_) return;
      tell_membership(scalar.name);
      const TensorView view{
          .data = scalar.value.bits.data(), .dtype = scalar.value.dtype, .shape = kOne};
      writer_->tensor(scalar.name, view, scalar.wall_secs);
      emit({.name = scalar.name,
            .value = scalar.value.to_double(),
            .wall_secs = scalar.wall_secs,
            .is_metric = scalar.is_metric});
    });
  }
  if (!step_open_) return;
  if (!exported_) export_collections();
  writer_->end_step();
  step_open_ = false;
  ++counted_.saved_steps;
  last_saved_step_ = step_clock_.current().step;
  report_writer_error();
  if (stretched_step_) settle_budget();
}

void Hook::export_collections() {
  const std::pair content(collections_->revision(), collections_->name_count());
  if (exported_ == content) return;
  writer_->put(format::collections_file_name(worker_to_file_name(worker_.name)),
               collections_->to_json());
  exported_ = content;
  if (options_.config.tensorboard_dir) {
    writer_->text({.name = "collections",
                   .wall_secs = options_.clock->unix_secs(),
                   .markdown = fmt::format("```json\n{}\n```", collections_->to_json())});
  }
}

Status Hook::write_collections() {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording()) return {};
  if (!plan_) SMD_RETURN_IF_ERROR(prepare());
  if (writer_) export_collections();
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

void Hook::report_writer_error() {
  auto error = writer_->take_error();
  // In strict mode close() gives the same error back.
  if (error) (void)guard_.handle("Writing", std::move(*error));
  if (guard_.disabled()) recording_ = false;
  if (const auto lost = writer_->take_output_error()) {
    warn_of_output(*lost);
  }
  if (!spool_) return;
  if (const auto unsent = spool_->take_error()) {
    warn_once(fmt::format("Sending to {} does not work at the moment; files wait in {}. {}",
                          spool_->name(), spool_->directory(), unsent->message));
  }
}

bool Hook::wants(std::string_view name) {
  if (!is_step_wanted() || !fork_guard_.in_owner()) return false;
  if (watching_ && plan_->is_watched(step().mode, name)) return true;
  if (observes_ && !plan_->observed(name).empty()) return true;
  return saving_ && !plan_->wanted(name).empty();
}

Action Hook::wanted(std::string_view name) {
  if (!is_recording() || !plan_) return {};
  Action action = saving_ ? plan_->wanted(name) : Action{};
  if (!observes_) return action;
  const Action& seen = plan_->observed(name);
  if (seen.empty()) return action;
  action.reductions.merge(recorded_reductions(seen));
  action.raw = action.raw || (recorder_ && recorder_->options().raw);
  return action;
}

bool Hook::is_collection_observed(std::string_view name) const {
  if (!is_recording() || !plan_) return false;
  return (saving_ && plan_->is_active(name)) || (observes_ && plan_->is_observed(name));
}

bool Hook::may_save(std::string_view collection) const {
  const auto& included = plan_options_.include_collections;
  return std::ranges::any_of(included,
                             [&](const std::string& name) {
                               return name == collection || name == collection_keys::kAll;
                             }) ||
         std::ranges::any_of(plan_options_.wishes,
                             [&](const SaveWish& w) { return w.collection == collection; });
}

bool Hook::is_collection_active(std::string_view name) const {
  return is_recording() && saving_ && plan_->is_active(name);
}

void Hook::join_kind(std::string_view name, Kind kind) {
  const std::string_view target = collection_of(kind);
  if (target.empty()) return;
  const auto collection = collections_->create(target);
  if (collection.ok() && !(*collection)->has_tensor_name(name))
    (*collection)->add_tensor_name(name);
}

Status Hook::save(std::string_view name, const TensorView& tensor, Kind kind) {
  return offer(name, tensor, nullptr, kind);
}

Status Hook::save_owned(std::string_view name, const OwnedTensor& tensor, Kind kind) {
  return offer(name, tensor.view(), &tensor, kind);
}

Status Hook::offer(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                   Kind kind) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_wanted() || !fork_guard_.in_owner()) {
    if (!step_clock_.started() && recording_) warn_of_early(name);
    return {};
  }
  return offer_wanted(name, tensor, owned, kind);
}

Status Hook::offer_wanted(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                          Kind kind) {
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  join_kind(name, kind);
  if (watching_) SMD_RETURN_IF_ERROR(watch(name, tensor));
  if (observes_) SMD_RETURN_IF_ERROR(observe(name, tensor));
  Status recorded = saving_ ? record(name, tensor, owned, plan_->wanted(name)) : Status();
  reduced_already_ = false;
  return recorded;
}

void Hook::warn_of_early(std::string_view name) {
  warn_once(fmt::format("'{}' was saved before the first step began; it is dropped.", name));
}

Status Hook::watch(std::string_view name, const TensorView& tensor) {
  const Mode mode = step().mode;
  std::erase(unseen_watches_, name);
  if (!unseen_watches_.empty()) seen_names_.emplace_back(name);
  if (!plan_->is_watched(mode, name)) return {};
  SMD_TRY(const bool nan, contains_nan(tensor));
  auto [known, added] = nan_before_[index_of(mode)].try_emplace(std::string(name), false);
  if (!std::exchange(known->second, nan) && nan) {
    if (!saving_) plan_->deactivate();
    plan_->trigger(mode, name);
    saving_ = true;
    triggered_[index_of(mode)] = name;
    step_trigger_ = name;
    options_.log->warning(fmt::format("'{}' holds a NaN at step {} ({} step {}): saving starts.",
                                      name, step().step, name_of(mode), step().mode_step));
    open_step();
    if (writer_) {
      const int64_t one[] = {1};
      writer_->strings(kWhenNan, one, {{name}}, options_.clock->unix_secs());
    }
  }
  return {};
}

// Under the name that people gave it and under the one it is stored as.
Status Hook::watch_scalar(std::string_view name, const Number& value) {
  const TensorView view{.data = value.bits.data(), .dtype = value.dtype, .shape = {}};
  SMD_RETURN_IF_ERROR(watch(name, view));
  return watch(std::string(kScalarPrefix).append(name), view);
}

void Hook::report_unseen_watches() {
  for (const std::string& name : unseen_watches_) {
    options_.log->warning(
        fmt::format("'{}' is watched for NaN but no tensor of this name was seen in the "
                    "first step.{}",
                    name, did_you_mean(name, seen_names_)));
  }
  unseen_watches_.clear();
  seen_names_ = {};
}

Status Hook::save_named(std::span<const std::string> names, const TensorView& tensor) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_saved() || !fork_guard_.in_owner()) return {};
  SMD_RETURN_IF_ERROR(check(tensor));
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  std::vector<std::string_view> stored;
  for (const std::string& name : names) {
    SMD_RETURN_IF_ERROR(check_tensor_name(name));
    SMD_TRY(const bool values, record_numbers(name, tensor, plan_->wanted(name)));
    if (values) stored.push_back(name);
  }
  if (stored.empty()) return {};
  return record_values(stored.front(), tensor, nullptr, std::span(stored).subspan(1));
}

Status Hook::record(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                    const Action& action) {
  SMD_TRY(const bool values, record_numbers(name, tensor, action));
  return values ? record_values(name, tensor, owned) : Status();
}

Result<bool> Hook::record_numbers(std::string_view name, const TensorView& tensor,
                                  const Action& action) {
  if (action.empty()) return false;
  if (!writer_) {
    warn_once(fmt::format("Dry run: '{}' would be saved.", name));
    return false;
  }
  tell_membership(name);
  const bool has_elements = tensor.size() > 0;
  ++counted_.tensors;
  if ((action.metric || action.scalar) && has_elements && writer_->has_outputs()) {
    open_step();
    emit_mean(name, tensor, action);
  }
  if (action.shape) {
    open_step();
    writer_->shape(name, name, tensor.shape);
  }
  if (!action.reductions.empty() || !action.histogram_of.empty())
    SMD_RETURN_IF_ERROR(reduce_into_step(name, tensor, action));
  return action.raw && has_elements;
}

Status Hook::record_values(std::string_view name, const TensorView& tensor,
                           const OwnedTensor* owned,
                           std::span<const std::string_view> other_names) {
  const double now = options_.clock->unix_secs();
  const format::TensorHead head{
      .name = name, .dtype = tensor.dtype, .shape = tensor.shape, .other_names = other_names};
  // The packed layout stores larger tensors in parts.
  const bool any_size = options_.config.layout == RunLayout::packed;
  if (Status fits = any_size
                        ? Status()
                        : format::check_record_size(head, static_cast<uint64_t>(tensor.size()));
      !fits.ok()) {
    return guard_.handle("save", std::move(fits.error()));
  }
  open_step();
  counted_.bytes += static_cast<uint64_t>(tensor.size_bytes());
  if (owned != nullptr) {
    writer_->tensor(name, *owned, now);
  } else {
    writer_->tensor(name, tensor, now, other_names);
  }
  return {};
}

void Hook::warn_of_output(const Error& error) {
  warn_once(fmt::format("Numbers beside the run were lost; the run itself is not harmed. {}",
                        error.message));
}

void Hook::emit(SavedScalar scalar) {
  if (!writer_->has_outputs()) return;
  const double ahead = scalar.wall_secs - options_.clock->unix_secs();
  if (scalar.is_metric && (ahead < -kOldestMetricSecs || ahead > kNewestMetricSecs)) {
    warn_once(
        fmt::format("The timestamp of the metric '{}' is more than 14 days old or 2 hours ahead; "
                    "it is replaced by the present time.",
                    scalar.name));
    scalar.wall_secs = options_.clock->unix_secs();
  }
  if (scalar.is_metric && !std::isfinite(scalar.value)) {
    warn_once(fmt::format("The metric '{}' is {} and not passed on; the run has it.", scalar.name,
                          std::isnan(scalar.value) ? "NaN" : "infinite"));
    scalar.is_metric = false;
  }
  writer_->scalar(scalar);
}

void Hook::emit_mean(std::string_view name, const TensorView& tensor, const Action& action) {
  const bool is_mean = tensor.size() > 1;
  if (is_mean && !action.metric) return;
  static const Reduction mean = *parse_reduction("mean");
  ReductionSet wanted;
  wanted.add(mean);
  reduced_already_ = false;
  const Status reduced = reduce(tensor, {.reductions = wanted}, reduced_);
  if (!reduced.ok() || reduced_.values.empty()) return;  // complex numbers have no such mean
  emit({.name = name,
        .value = reduced_.values.front().second.to_double(),
        .wall_secs = options_.clock->unix_secs(),
        .is_metric = action.metric,
        .is_mean = is_mean});
}

Status Hook::reduce_into_step(std::string_view name, const TensorView& tensor,
                              const Action& action) {
  const ReductionSet& reductions = action.reductions;
  if (tensor.size() == 0) {
    if (!reductions.empty()) {
      warn_once(fmt::format("'{}' has no elements: no reductions of it are saved.", name));
    }
    return {};
  }
  const bool histogram = !action.histogram_of.empty() && tensor.dtype != DType::boolean;
  if (!reduced_already_) {
    const ReductionRequest request{.reductions = reductions, .histogram = histogram};
    if (Status reduced = reduce(tensor, request, reduced_); !reduced.ok()) {
      return guard_.handle("reduce", std::move(reduced.error()));
    }
    SMD_RETURN_IF_ERROR(look_for_bad(name, tensor));
  }
  store_reductions(reductions);
  if (static_cast<int>(stored_.size()) < reductions.size()) {
    warn_once(fmt::format("'{}' is {}: only norms and reductions of absolute values are saved.",
                          name, name_of(tensor.dtype)));
  }
  const double now = options_.clock->unix_secs();
  if (histogram) emit_histogram(name, action.histogram_of, now);
  if (stored_.empty()) return {};
  if (remembers_saved()) recent_.add(name, now, stored_);
  open_step();
  counted_.bytes += stored_.size() * sizeof(Number::bits);
  writer_->reductions(name, now, stored_);
  return {};
}

Status Hook::save_undue(std::string_view name, const TensorView& tensor, Kind kind) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  if (!is_recording() || !plan_ || !step_clock_.started() || step_ended_) return {};
  const auto collection = collections_->find(collection_of(kind));
  const Action* wanted = plan_->wanted_by(collection_of(kind));
  if (!collection || wanted == nullptr) return {};
  const SaveConfig& config =
      collection->save_config() ? *collection->save_config() : plan_options_.save_config;
  const SaveConfigMode* when = config.mode(step().mode);
  if (when != nullptr && when->end_step && step().mode_step >= *when->end_step) return {};
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  join_kind(name, kind);
  return record(name, tensor, nullptr, *wanted);
}

Status Hook::save_reductions(std::string_view name,
                             std::span<const std::pair<std::string, Number>> values) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  const bool looking = is_step_wanted() && is_recording();
  const double now = options_.clock->unix_secs();
  const ReductionSet saved = looking && saving_ ? plan_->wanted(name).reductions : ReductionSet();
  ReductionSet recorded;
  if (recorder_ && looking) recorded = recorded_reductions(plan_->observed(name));
  std::vector<StoredReduction> kept;
  stored_.clear();
  for (const auto& [label, number] : values) {
    SMD_TRY(const Reduction reduction, parse_reduction(label));
    const StoredReduction value{
        .name = stored_name(reduction), .dtype = number.dtype, .bits = number.bits};
    if (saved.contains(reduction)) stored_.push_back(value);
    if (recorded.contains(reduction)) kept.push_back(value);
  }
  if (!looking) return {};
  if (recorder_) recorder_->add(name, now, kept);
  if (bad_.is_looking()) bad_.see(step(), name, values);
  if (stored_.empty() || !writer_) return {};
  tell_membership(name);
  if (remembers_saved()) recent_.add(name, now, stored_);
  open_step();
  ++counted_.tensors;
  counted_.bytes += stored_.size() * sizeof(Number::bits);
  writer_->reductions(name, now, stored_);
  return {};
}

Status Hook::save_shape(std::string_view name, std::span<const int64_t> shape) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(element_count(shape));
  if (!saving_ || !is_recording() || !plan_->wanted(name).shape || !writer_) return {};
  tell_membership(name);
  open_step();
  writer_->shape(name, name, shape);
  return {};
}

// Of the tensor that was reduced last.
void Hook::emit_histogram(std::string_view name, std::string_view collection, double wall_secs) {
  if (reduced_.histogram.counts.empty()) {
    warn_once(
        fmt::format("'{}' has no number between -9.9e19 and 9.9e19 at step {}: there is no "
                    "histogram of it.",
                    name, step().step));
    return;
  }
  open_step();
  writer_->histogram({.name = fmt::format("{}/{}", collection, name),
                      .wall_secs = wall_secs,
                      .histogram = view_of(reduced_.histogram)});
}

void Hook::tell_membership(std::string_view name) {
  if (!tells_membership_) return;
  if (told_revision_ != collections_->revision()) {
    told_.clear();
    told_revision_ = collections_->revision();
  }
  if (told_.contains(name)) return;
  std::vector<std::string_view> held_by;
  for (const auto& collection : collections_->collections()) {
    if (collection->holds(name)) held_by.push_back(collection->name());
  }
  open_step();
  writer_->membership({.tensor = name, .collections = held_by});
  told_.emplace(name);
}

bool Hook::wants_tensor(std::span<const std::string> collections) {
  if (!is_recording() || closed_ || !plan_ || !step_clock_.started() || step_ended_) return false;
  return saving_ || user_wants_tensor(collections);
}

// Without wishes.
bool Hook::user_wants_tensor(std::span<const std::string> collections) {
  if (saving_ && plan_->any_due()) return true;
  for (const std::string& name : collections) {
    const auto collection = collections_->find(name);
    const SaveConfig& config = collection && collection->save_config() ? *collection->save_config()
                                                                       : plan_options_.save_config;
    if (config.should_save(step().mode, step().mode_step)) return true;
  }
  return false;
}

Result<Action> Hook::custom_action(std::string_view name,
                                   std::span<const std::string> collections) {
  const bool by_user = user_wants_tensor(collections);
  bool changed = false;
  for (const std::string& target : collections) {
    SMD_TRY(const auto collection, collections_->create(target));
    if (!collection->has_tensor_name(name)) collection->add_tensor_name(name);
    if (plan_->wanted_by(target) == nullptr && target != collection_keys::kScalars) {
      add_unique(plan_options_.custom_collections, target);
      changed = true;
    }
  }
  if (changed) {
    const bool was_saving = saving_;
    SMD_RETURN_IF_ERROR(prepare());
    plan_->activate(step().mode, step().mode_step);
    if (!step_trigger_.empty()) plan_->trigger(step().mode, step_trigger_);
    saving_ = was_saving || plan_->any_active();
  }
  Action action = saving_ ? plan_->due(name) : Action{};
  for (const std::string& target : collections) {
    if (!by_user) break;
    const Action* own = plan_->wanted_by(target);
    if (own != nullptr) {
      action.merge(*own);
    } else {
      action.raw = true;  // `scalars` only lists names
    }
  }
  if (saving_ && !action.raw) action.merge(plan_->wished(name));
  return action;
}

Status Hook::save_tensor(std::string_view name, const TensorView& tensor,
                         std::span<const std::string> collections) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  if (!is_recording()) return {};
  if (!step_clock_.started() || !plan_) {
    warn_of_early(name);
    return {};
  }
  if (step_ended_) {
    warn_once(fmt::format("'{}' was saved between two steps; it is dropped.", name));
    return {};
  }
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  if (watching_) SMD_RETURN_IF_ERROR(watch(name, tensor));
  if (observes_) SMD_RETURN_IF_ERROR(observe(name, tensor));
  reduced_already_ = false;  // its collections may want more than those of the plan
  if (!wants_tensor(collections)) return {};
  SMD_TRY(const Action action, custom_action(name, collections));
  return record(name, tensor, nullptr, action);
}

Status Hook::save_strings(std::string_view name, std::span<const std::string_view> strings,
                          std::span<const int64_t> shape,
                          std::span<const std::string> collections) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_TRY(const int64_t count, element_count(shape));
  if (count != static_cast<int64_t>(strings.size())) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} strings do not fill the shape [{}] of '{}'.", strings.size(),
                             fmt::join(shape, ", "), name)};
  }
  if (!is_recording() || !wants_tensor(collections)) return {};
  SMD_TRY(const Action action, custom_action(name, collections));
  if (!writer_ || action.empty()) return {};
  tell_membership(name);
  if (action.shape) {
    open_step();
    writer_->shape(name, name, shape);
  }
  if (!action.reductions.empty())
    warn_once(fmt::format("'{}' holds strings: no reductions are saved.", name));
  if (!action.raw || strings.empty()) return {};
  open_step();
  writer_->strings(name, shape, strings, options_.clock->unix_secs());
  return {};
}

Status Hook::save_scalar(std::string_view name, const Number& value, const ScalarOptions& options) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording()) return {};
  if (watching_) SMD_RETURN_IF_ERROR(watch_scalar(name, value));
  if (observes_ && watching_ && bad_.is_looking()) {
    const std::pair<std::string, Number> result[] = {{"max", value}};
    bad_.see(step(), std::string(kScalarPrefix).append(name), result);
  }
  const double wall_secs = options.wall_secs ? *options.wall_secs : options_.clock->unix_secs();
  if (!scalars_.knows(name)) SMD_RETURN_IF_ERROR(check_tensor_name(name));
  if (!scalars_.set(name, value, {.wall_secs = wall_secs, .is_metric = options.sm_metric})) {
    return {};
  }
  // A new name: the slow path, once.
  SMD_TRY(const auto collection, collections_->create(collection_keys::kScalars));
  const bool planned = planned_revision_ == collections_->revision();
  collection->add_tensor_name(scalars_.last_added());
  if (planned) planned_revision_ = collections_->revision();  // no plan depends on this list
  return {};
}

Status Hook::save_scalar(std::string_view name, double value, const ScalarOptions& options) {
  return save_scalar(name, Number::real(DType::float64, value), options);
}

void Hook::warn_once(std::string message) {
  if (const auto [it, added] = warned_.insert(std::move(message)); added)
    options_.log->warning(*it);
}

Status Hook::close(const CloseOptions& options) {
  if (closed_ || !fork_guard_.in_owner()) return {};
  Status status;
  if (!plan_) status = prepare();
  if (status.ok() && recording_ && !scalars_.empty() && (!step_clock_.started() || step_ended_)) {
    step_clock_.advance();  // they have no step of their own
    step_ended_ = false;
  }
  if (recording_ && plan_) finish_step();
  if (recording_ && resume_file_) {
    next_state_look_ =
        next_stirred_look_ = {};  // whatever it costs: a checkpoint of the last step counts, too
    save_resume_state();
  }
  closed_ = true;
  recording_ = false;
  saving_ = false;
  watching_ = false;
  if (counted_.saved_steps > 0) options_.log->info(bill().to_text());
  if (!writer_) {
    if (options_.feed) options_.feed->end();  // nobody writes to it
    Status sent = close_spool();
    return status.ok() ? std::move(sent) : std::move(status);
  }
  export_collections();
  if (!options_.environment.in_sagemaker() && !options.goes_on) {
    const bool all = options_.config.include_workers == IncludeWorkers::all;
    writer_->end_job({.num_workers = all ? worker_.count : 1,
                      .wait_for_others = options.at_exit && worker_.name == worker_.chief});
  }
  if (flight_run_) {
    if (Status closed = flight_run_->close(); !closed.ok()) {
      options_.log->warning(
          fmt::format("The flight recorder was not written. {}", closed.error().message));
    }
  }
  if (Status closed = writer_->close(); !closed.ok()) status = std::move(closed);
  if (const auto lost = writer_->take_output_error()) warn_of_output(*lost);
  Status sent = close_spool();
  if (sent.ok()) return status;
  if (status.ok()) return sent;
  options_.log->error(sent.error().message);
  return status;
}

Status Hook::close_spool() {
  if (tensorboard_spool_) {
    if (const Status sent = tensorboard_spool_->close(); !sent.ok()) warn_of_output(sent.error());
  }
  return spool_ ? spool_->close() : Status();
}

}  // namespace smd
