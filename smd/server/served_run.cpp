#include "smd/server/served_run.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "smd/base/signals_blocked.h"
#include "smd/trial/run_health.h"

namespace smd::server {
namespace {

using std::chrono::milliseconds;

// How long one look waits for news; the stop of the server waits no longer.
constexpr milliseconds kLocalWait{300};
constexpr milliseconds kRemoteWait{2000};
// Between two looks, however much is written.
constexpr milliseconds kBetweenLooks{100};
constexpr milliseconds kAfterFailure{1000};

constexpr std::array<std::string_view, 6> kStateNames = {"waiting", "running", "silent",
                                                         "ended",   "gone",    "failed"};

}  // namespace

std::string_view name_of(RunState state) { return kStateNames[static_cast<size_t>(state)]; }

Result<std::shared_ptr<ServedRun>> ServedRun::open(ServedRunOptions options) {
  SMD_TRY(auto storage, storage::open_storage(options.location));
  SMD_TRY(auto trial, Trial::open(std::move(storage), {.end_delay_secs = 0}));
  return std::shared_ptr<ServedRun>(new ServedRun(std::move(options), std::move(trial)));
}

ServedRun::ServedRun(ServedRunOptions options, std::shared_ptr<Trial> trial)
    : options_(std::move(options)), trial_(std::move(trial)) {
  auto facts = std::make_shared<RunFacts>();
  facts->revision = options_.first_revision;
  facts->catalogue = options_.first_revision;
  facts->snapshot = trial_->snapshot();
  facts->model = std::make_shared<const Model>(make_model(*facts->snapshot));
  facts_ = std::move(facts);
}

ServedRun::~ServedRun() { stop(); }

void ServedRun::ask_to_stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
}

void ServedRun::stop() {
  ask_to_stop();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const RunFacts> ServedRun::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

std::shared_ptr<const Verdict> ServedRun::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

void ServedRun::set_verdict(std::shared_ptr<const Verdict> verdict) {
  const std::lock_guard lock(mutex_);
  verdict_ = std::move(verdict);
}

void ServedRun::load() { look(); }

void ServedRun::start() {
  const SignalsBlocked none;
  thread_ = std::thread([this] { follow(); });
}

void ServedRun::mark_gone() {
  if (facts()->state == RunState::gone) return;
  stop();
  RunFacts facts = *this->facts();
  facts.state = RunState::gone;
  publish(std::move(facts));
}

bool ServedRun::sleep(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, time, [this] { return stop_; });
}

void ServedRun::follow() {
  const bool is_remote = trial_->storage().is_remote();
  bool may_have_news = true;
  for (;;) {
    if (may_have_news) {
      look();
      const auto now = facts();
      if (now->state == RunState::ended && now->snapshot->loaded_all()) return;
      if (!sleep(now->state == RunState::failed ? kAfterFailure : kBetweenLooks)) return;
      if (now->state == RunState::failed) continue;
    }
    if (is_remote) {
      if (!sleep(kRemoteWait)) return;
      may_have_news = true;
    } else {
      may_have_news = trial_->wait(std::chrono::steady_clock::now() + kLocalWait);
      if (!sleep(milliseconds(0))) return;
    }
    if (!may_have_news) {
      // Silence is news, too.
      RunFacts facts = *this->facts();
      const RunState state = state_of(*facts.snapshot, false);
      if (state != facts.state && facts.state != RunState::failed) {
        facts.state = state;
        publish(std::move(facts));
      }
    }
  }
}

RunState ServedRun::state_of(const Snapshot& snapshot, bool is_news) {
  if (trial_->has_ended()) return RunState::ended;
  if (snapshot.row_count() == 0) {
    return snapshot.workers().empty() ? RunState::waiting : RunState::running;
  }
  const double now = options_.clock->unix_secs();
  if (heard_secs_ == 0 || is_news) heard_secs_ = now;
  return now - heard_secs_ > kSilenceSecs ? RunState::silent : RunState::running;
}

bool ServedRun::needs_model(const Snapshot& snapshot) {
  bool is_new = snapshot.names().tensors.size() != seen_names_ ||
                snapshot.collections_revision() != seen_collections_;
  seen_names_ = snapshot.names().tensors.size();
  seen_collections_ = snapshot.collections_revision();
  for (; seen_parts_ < snapshot.part_count(); ++seen_parts_) {
    const Part& part = snapshot.part(static_cast<uint32_t>(seen_parts_));
    const StepRow* const row = snapshot.find_row(part.step);
    if (row == nullptr) continue;
    is_new = seen_layouts_.emplace(part.layout, row->info.mode).second || is_new;
  }
  return is_new;
}

bool ServedRun::look() {
  const auto before = facts();
  RunFacts facts = *before;
  if (const Status refreshed = trial_->refresh(); !refreshed.ok()) {
    if (before->state == RunState::failed && before->error == refreshed.error().message)
      return false;
    facts.state = RunState::failed;
    facts.error = refreshed.error().message;
    publish(std::move(facts));
    return true;
  }
  facts.error.clear();
  facts.snapshot = trial_->snapshot();
  const bool is_news = facts.snapshot != before->snapshot;
  if (needs_model(*facts.snapshot)) {
    facts.model = std::make_shared<const Model>(make_model(*facts.snapshot));
    ++facts.catalogue;
  }
  if (const size_t rows = facts.snapshot->row_count(); rows > 0) {
    const Snapshot& now = *facts.snapshot;
    if (!facts.first_wall_secs) facts.first_wall_secs = smd::wall_secs(*trial_, now, now.row(0));
    if (is_news || !facts.last_wall_secs) {
      facts.last_wall_secs = smd::wall_secs(*trial_, now, now.row(rows - 1));
    }
  }
  // What was there before we came was written when its last step was.
  if (heard_secs_ == 0 && facts.last_wall_secs) heard_secs_ = *facts.last_wall_secs;
  facts.state = state_of(*facts.snapshot, is_news && before->state != RunState::waiting);
  const bool has_changed = is_news || facts.state != before->state ||
                           facts.catalogue != before->catalogue || facts.error != before->error;
  if (has_changed) publish(std::move(facts));
  return has_changed;
}

void ServedRun::publish(RunFacts facts) {
  ++facts.revision;
  {
    const std::lock_guard lock(mutex_);
    facts_ = std::make_shared<const RunFacts>(std::move(facts));
  }
  if (options_.changed) options_.changed(options_.id);
}

std::vector<double> ServedRun::wall_secs(const Snapshot& snapshot,
                                         const std::vector<uint32_t>& rows) const {
  std::vector<double> out(rows.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<size_t> unknown;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto known = wall_secs_.find(snapshot.row(rows[i]).info.step);
      if (known != wall_secs_.end()) {
        out[i] = known->second;
      } else {
        unknown.push_back(i);
      }
    }
  }
  for (const size_t i : unknown) {
    if (const auto secs = smd::wall_secs(*trial_, snapshot, snapshot.row(rows[i]))) out[i] = *secs;
  }
  const std::lock_guard lock(mutex_);
  for (const size_t i : unknown) {
    if (out[i] == out[i]) wall_secs_[snapshot.row(rows[i]).info.step] = out[i];
  }
  return out;
}

std::vector<ServedRun::Form> ServedRun::forms(const RunFacts& facts) const {
  const Snapshot& snapshot = *facts.snapshot;
  std::unordered_map<uint32_t, Form> known;
  {
    const std::lock_guard lock(mutex_);
    known = forms_;
  }
  const auto complete = [](const Form& form) { return form.dtype && form.shape; };
  std::set<uint32_t> seen;
  const size_t tensors = facts.model->tensors.size();
  size_t done = 0;
  for (const Model::Tensor& tensor : facts.model->tensors)
    done += complete(known[tensor.id]) ? 1 : 0;
  for (size_t i = 0; i < snapshot.row_count() && done < tensors; ++i) {
    snapshot.for_each_part(snapshot.row(i), [&](uint32_t id, const Part& part) {
      if (!seen.insert(part.layout).second) return;
      const Layout& layout = snapshot.layout_of(part);
      for (uint32_t e = 0; e < layout.entries().size(); ++e) {
        const Layout::Entry& entry = layout.entries()[e];
        Form& form = known[entry.tensor];
        if (entry.slot != Slot::value().id() || form.dtype) continue;
        const auto about = trial_->describe(snapshot, {.part = id, .entry = e});
        if (!about.ok()) continue;
        form = {about->dtype, about->shape};
        ++done;
      }
      for (const Layout::ShapeOf& shape : layout.shapes()) {
        if (Form& form = known[shape.tensor]; !form.shape) form.shape = shape.shape;
      }
    });
  }
  std::vector<Form> out;
  for (const Model::Tensor& tensor : facts.model->tensors) out.push_back(known[tensor.id]);
  const std::lock_guard lock(mutex_);
  forms_ = std::move(known);
  return out;
}

}  // namespace smd::server
