#include "smd/hook/hook.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/json.h"
#include "smd/config/json_value.h"
#include "smd/format/file_name.h"
#include "smd/types/worker.h"

namespace smd {

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

void Hook::set_collections(std::shared_ptr<CollectionSet> collections) {
  collections_ = std::move(collections);
  exported_.reset();
  planned_revision_ = ~uint64_t{0};  // this step keeps its plan, the next one makes a new one
}

Status Hook::check_usable() const {
  if (!closed_) return {};
  return Error{ErrorCode::closed, "The hook is closed: nothing can be saved any more."};
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

bool Hook::wants(Ticket& ticket) {
  if (!is_step_wanted() || !fork_guard_.in_owner()) return false;
  if (watching_ && plan_->is_watched(step().mode, ticket.name())) return true;
  if (!saving_ && !observes_) return false;
  look_up(ticket);
  return !ticket.observed_.empty() || (saving_ && !ticket.wanted_.empty());
}

Action Hook::wanted(std::string_view name) {
  if (!is_recording() || !plan_) return {};
  const Action action = saving_ ? plan_->wanted(name) : Action{};
  return observes_ ? with_observed(action, plan_->observed(name)) : action;
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
  if (recording_ && plan_) {
    settle_late(true);
    finish_step();
    if (bad_.is_found()) report_bad_tensor();
    if (!dump_reason_.empty()) write_flight_recorder();
  }
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
  if (counted_.saved_steps > 0) {
    const std::string worker = worker_to_file_name(worker_.name);
    writer_->put(bill_file_name(worker), bill().to_json(worker_.name));
  }
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
