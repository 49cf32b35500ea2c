#include "smd/server/site.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <set>

#include "smd/base/nearest.h"
#include "smd/base/signals_blocked.h"

namespace smd::server {
namespace {

using std::chrono::steady_clock;

// Steps that the rules see between two looks at the clock.
constexpr size_t kRowsAtOnce = 16;
// How long the rules rest when somebody opens the page, and how long they do not rest again.
constexpr std::chrono::milliseconds kRest{1500};
constexpr std::chrono::seconds kBetweenRests{5};
// How often the rules are asked about runs that grow, and how often others hear of it.
constexpr std::chrono::milliseconds kBetweenJudgements{250};
constexpr std::chrono::milliseconds kBetweenVerdicts{1000};
constexpr std::chrono::seconds kTick{5};
// Of so few runs all are judged without being asked for.
constexpr size_t kFewRuns = 4;

std::string random_text() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

Json brief(const ServedRun& run) {
  const auto facts = run.facts();
  return {{"id", run.id()},
          {"revision", facts->revision},
          {"catalogue", facts->catalogue},
          {"state", name_of(facts->state)}};
}

}  // namespace

struct Site::Case {
  std::shared_ptr<ServedRun> run;
  std::unique_ptr<Judgement> judgement;
  uint64_t judged_revision = 0;
  uint64_t verdicts = 0;
  steady_clock::time_point told{};
  steady_clock::time_point asked{};
  bool is_behind = true;
};

Site::Site(SiteOptions options)
    : options_(std::move(options)),
      instance_(random_text()),
      statistics_(std::make_unique<StatisticCache>()),
      bodies_(std::make_unique<BodyCache>()) {}

Result<std::unique_ptr<Site>> Site::open(SiteOptions options) {
  std::unique_ptr<Site> site(new Site(std::move(options)));
  Site* const self = site.get();
  SMD_TRY(site->runs_,
          RunList::open({.locations = site->options_.locations,
                         .clock = site->options_.clock,
                         .changed = [self](const std::string& id) { self->changed(id); }}));
  site->comparisons_ =
      std::make_unique<Comparisons>([self](const ComparisonKey& key, Comparison::State state) {
        if (!self->tell_) return;
        self->tell_({.event = "compare",
                     .run = key.a,
                     .data = {{"a", key.a},
                              {"b", key.b},
                              {"state", state == Comparison::State::ready ? "ready" : "failed"}}});
      });
  return site;
}

Site::~Site() {
  stop();
  cases_.clear();
  comparisons_.reset();
  runs_.reset();
}

void Site::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (judge_.joinable()) judge_.join();
  if (comparisons_) comparisons_->stop();
  if (runs_) runs_->stop();
}

void Site::start(std::function<void(const News&)> tell) {
  tell_ = std::move(tell);
  const SignalsBlocked none;
  make_room();
  runs_->start();
  judge_ = std::thread([this] { judge(); });
}

Result<std::shared_ptr<ServedRun>> Site::run(std::string_view id) const {
  if (auto found = runs_->find(id)) return found;
  std::vector<std::string> ids;
  for (const auto& run : runs_->runs()) ids.push_back(run->id());
  constexpr size_t kMostShown = 200;
  return Error{ErrorCode::not_found, fmt::format("There is no run '{}'.{}",
                                                 id.substr(0, kMostShown), did_you_mean(id, ids))};
}

void Site::make_room() const {
  const auto now = steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (now > rest_until_ + kBetweenRests) rest_until_ = now + kRest;
}

bool Site::wait_for_room() {
  std::unique_lock lock(mutex_);
  while (!stop_ && steady_clock::now() < rest_until_) {
    const auto until = rest_until_;
    stopping_.wait_until(lock, until, [this] { return stop_; });
  }
  return !stop_;
}

News Site::hello() const {
  Json runs = Json::array();
  for (const auto& run : runs_->runs()) runs.push_back(brief(*run));
  return {
      .event = "hello", .run = {}, .data = {{"instance", instance_}, {"runs", std::move(runs)}}};
}

void Site::changed(const std::string& id) {
  if (id.empty()) {
    std::set<std::string> ids;
    for (const auto& run : runs_->runs()) ids.insert(run->id());
    statistics_->keep(ids);
    bodies_->keep(ids);
  }
  if (!tell_) return;
  if (id.empty()) {
    News news = hello();
    news.event = "runs";
    news.data.erase("instance");
    tell_(news);
    return;
  }
  const auto run = runs_->find(id);
  if (!run) return;
  const auto facts = run->facts();
  const size_t rows = facts->snapshot->row_count();
  Json data = brief(*run);
  data["steps"] = rows;
  data["last_step"] = rows == 0 ? Json(nullptr) : Json(facts->snapshot->row(rows - 1).info.step);
  data["tensors"] = facts->model->tensors.size();
  tell_({.event = "run", .run = id, .data = std::move(data)});
}

void Site::judge() {
  for (;;) {
    bool has_more = false;
    const auto runs = runs_->runs();
    for (const auto& run : runs) {
      if (!run->wants_verdict() && runs.size() > kFewRuns) continue;
      if (!wait_for_room()) return;
      has_more = judge(run) || has_more;
    }
    // Runs that were replaced by others in the same place.
    std::erase_if(cases_, [&](const auto& one) {
      return std::ranges::find(runs, one.second->run) == runs.end();
    });
    std::unique_lock lock(mutex_);
    if (stopping_.wait_for(lock, has_more ? std::chrono::milliseconds(0) : kBetweenJudgements,
                           [this] { return stop_; })) {
      return;
    }
  }
}

bool Site::judge(const std::shared_ptr<ServedRun>& run) {
  auto& one = cases_[run.get()];
  if (!one) {
    one = std::make_unique<Case>();
    one->run = run;
    one->judgement = std::make_unique<Judgement>(run->trial(), options_.clock);
  }
  const auto facts = run->facts();
  const auto now = steady_clock::now();
  const bool is_news = facts->revision != one->judged_revision;
  const bool is_tick = !one->judgement->is_final() && now - one->asked > kTick;
  if (!one->is_behind && !is_news && !is_tick) return false;
  if (facts->state == RunState::gone || facts->state == RunState::failed) return false;
  if (one->judgement->is_outdated()) {
    one->judgement = std::make_unique<Judgement>(run->trial(), options_.clock);
  }
  const bool is_over = facts->state == RunState::silent ||
                       (facts->state == RunState::ended && facts->snapshot->loaded_all());
  const auto is_done = one->judgement->advance(kRowsAtOnce, is_over);
  one->asked = now;
  // What cannot be read now may be readable with the next news.
  if (!is_done.ok()) one->judged_revision = facts->revision;
  one->is_behind = is_done.ok() && !*is_done;
  if (!one->is_behind) one->judged_revision = facts->revision;
  if (one->is_behind && now - one->told < kBetweenVerdicts) return true;
  one->told = now;
  Verdict verdict = one->judgement->verdict(one->is_behind               ? Verdict::State::pending
                                            : one->judgement->is_final() ? Verdict::State::final
                                                                         : Verdict::State::live);
  verdict.number = ++one->verdicts;
  publish(*run, std::move(verdict));
  return one->is_behind;
}

void Site::publish(ServedRun& run, Verdict verdict) {
  const auto before = run.verdict();
  const bool is_new =
      !before || before->document != verdict.document || before->state != verdict.state;
  if (!is_new) return;
  const News news{.event = "findings",
                  .run = run.id(),
                  .data = {{"id", run.id()},
                           {"revision", verdict.number},
                           {"state", name_of(verdict.state)},
                           {"findings",
                            {{"error", verdict.counts[2]},
                             {"warning", verdict.counts[1]},
                             {"info", verdict.counts[0]}}}}};
  run.set_verdict(std::make_shared<const Verdict>(std::move(verdict)));
  if (tell_) tell_(news);
}

Status Site::judge_now(ServedRun& run) const {
  Judgement judgement(run.trial(), options_.clock);
  SMD_TRY(const bool is_done, judgement.advance(SIZE_MAX, true));
  SMD_CHECK(is_done);
  Verdict verdict = judgement.verdict(Verdict::State::final);
  verdict.number = 1;
  run.set_verdict(std::make_shared<const Verdict>(std::move(verdict)));
  return {};
}

}  // namespace smd::server
