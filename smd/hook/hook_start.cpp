// The part of the hook that begins a recording: what its configuration means, where the run goes
// and who writes it.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "smd/hook/destination.h"
#include "smd/hook/hook.h"
#include "smd/hook/named_folder.h"
#include "smd/hook/run_state.h"
#include "smd/hook/tensorboard_output.h"
#include "smd/types/worker.h"
#include "smd/writer/outputs/metrics_file.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {
namespace {

void add_unique(std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

}  // namespace

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

}  // namespace smd
