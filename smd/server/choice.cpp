#include "smd/server/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/base/nearest.h"
#include "smd/server/heat_map.h"
#include "smd/server/site.h"

namespace smd::server {
namespace {

constexpr size_t kMostTensors = 64;
constexpr int64_t kMostId = UINT32_MAX;
constexpr size_t kMostShown = 200;
// Among more names nobody looks for the nearest one.
constexpr size_t kMostCompared = 20'000;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error missing(std::string message) { return {ErrorCode::not_found, std::move(message)}; }

std::string shown(std::string_view name) {
  return name.size() <= kMostShown ? std::string(name)
                                   : std::string(name.substr(0, kMostShown)) + "…";
}

Result<uint32_t> find_name(const RunFacts& facts, const std::string& name) {
  const NameList& names = facts.snapshot->names().tensors;
  const auto id = names.find(name);
  if (id && facts.model->find(*id) != nullptr) return *id;
  std::vector<std::string_view> known;
  for (const Model::Tensor& tensor : facts.model->tensors) {
    if (name.size() <= kMostShown && known.size() < kMostCompared)
      known.push_back(names[tensor.id]);
  }
  return missing(fmt::format("There is no tensor '{}'.{}", shown(name), did_you_mean(name, known)));
}

Result<uint32_t> find_id(const RunFacts& facts, int64_t id) {
  if (facts.model->find(static_cast<uint32_t>(id)) != nullptr) return static_cast<uint32_t>(id);
  return missing(fmt::format("There is no tensor with the id {}.", id));
}

}  // namespace

std::string ChosenRun::version() const { return fmt::format("{}", facts->revision); }

Result<ChosenRun> choose_run(const Site& site, std::string_view id) {
  SMD_TRY(auto run, site.run(id));
  auto facts = run->facts();
  return ChosenRun{std::move(run), std::move(facts)};
}

Result<ChosenRun> choose_readable_run(const Site& site, std::string_view id) {
  SMD_TRY(ChosenRun out, choose_run(site, id));
  if (out.facts->state == RunState::gone) {
    return missing(fmt::format("The files of the run were removed: {}", out.run->location()));
  }
  return out;
}

Result<uint32_t> choose_tensor(const Query& query, const RunFacts& facts) {
  SMD_TRY(const auto id, query.integer("id", {0, kMostId}));
  if (query.has("tensor") == id.has_value()) {
    return wrong("Name one tensor, with either the parameter tensor or the parameter id.");
  }
  if (id) return find_id(facts, *id);
  return find_name(facts, query.texts("tensor").front());
}

Result<std::vector<uint32_t>> choose_tensors(const Query& query, const RunFacts& facts) {
  const auto names = query.texts("tensor");
  SMD_TRY(const auto ids, query.integers("id", {0, kMostId}));
  if (names.empty() && ids.empty()) {
    return wrong("Name tensors with the parameter tensor or the parameter id.");
  }
  if (names.size() + ids.size() > kMostTensors) {
    return wrong(fmt::format("There are {} tensors, but at most {} are allowed at once.",
                             names.size() + ids.size(), kMostTensors));
  }
  std::vector<uint32_t> out;
  const auto add = [&](uint32_t id) {
    if (std::ranges::find(out, id) == out.end()) out.push_back(id);
  };
  for (const int64_t id : ids) {
    SMD_TRY(const uint32_t found, find_id(facts, id));
    add(found);
  }
  for (const std::string& name : names) {
    SMD_TRY(const uint32_t found, find_name(facts, name));
    add(found);
  }
  return out;
}

Status check_worker(const RunFacts& facts, const std::string& worker) {
  const NameList& names = facts.snapshot->names().workers;
  if (names.find(worker)) return {};
  return missing(
      fmt::format("There is no worker '{}'.{}", shown(worker), did_you_mean(worker, names.all())));
}

Result<std::string> choose_worker(const Query& query, const RunFacts& facts) {
  SMD_TRY(const auto worker, query.text("worker"));
  if (!worker) return std::string();
  SMD_RETURN_IF_ERROR(check_worker(facts, *worker));
  return *worker;
}

Result<StepRange> choose_steps(const Query& query) {
  SMD_TRY(const auto from, query.integer("from", {}));
  SMD_TRY(const auto to, query.integer("to", {}));
  const StepRange out{.begin = from.value_or(0), .end = to};
  if (to && *to <= out.begin) {
    return wrong(fmt::format("The steps end with {}, which is not after their beginning, {}.", *to,
                             out.begin));
  }
  return out;
}

Result<HeatMapChoice> choose_heat_map(const Query& query, const RunFacts& facts) {
  constexpr int64_t kMostRows = 20'000;
  constexpr std::string_view kChannels[] = {"mean",     "min",     "mean,min",    "max",
                                            "mean,max", "min,max", "mean,min,max"};
  HeatMapChoice out;
  SMD_TRY(out.mode, query.mode());
  SMD_TRY(out.worker, choose_worker(query, facts));
  SMD_TRY(out.range, choose_steps(query));
  SMD_TRY(const auto role, query.choice("role", role_names()));
  if (role) out.role = static_cast<Role>(*role);
  SMD_TRY(const auto collection, query.text("collection"));
  SMD_TRY(const auto module, query.text("module"));
  out.collection = collection.value_or("");
  out.module = module.value_or("");
  SMD_TRY(const auto first, query.integer("first", {0, kMostId}));
  SMD_TRY(const auto count, query.integer("count", {1, kMostId}));
  SMD_TRY(const auto rows, query.integer("rows", {1, kMostRows}));
  SMD_TRY(const auto columns, query.integer("columns", {1, kMostPoints}));
  SMD_TRY(const auto channels, query.choice("channels", kChannels));
  out.first = static_cast<uint32_t>(first.value_or(0));
  out.count = static_cast<uint32_t>(count.value_or(UINT32_MAX));
  out.rows = static_cast<uint32_t>(rows.value_or(kDefaultPoints));
  out.columns = static_cast<uint32_t>(columns.value_or(kDefaultPoints));
  // The list is in the order of the bits.
  out.channels = static_cast<uint32_t>(channels.value_or(0) + 1);
  return out;
}

Result<std::vector<uint32_t>> tensors_of(const HeatMapChoice& choice, const RunFacts& facts,
                                         const Statistic& statistic) {
  const Model& model = *facts.model;
  size_t begin = 0;
  size_t end = model.tensors.size();
  if (!choice.module.empty()) {
    const auto found = std::ranges::find(model.modules, choice.module, &Model::Module::path);
    if (found == model.modules.end()) {
      std::vector<std::string_view> paths;
      for (const Model::Module& module : model.modules) paths.push_back(module.path);
      return missing(fmt::format("There is no module '{}'.{}", shown(choice.module),
                                 did_you_mean(choice.module, paths)));
    }
    begin = found->first;
    end = begin + found->count;
  }
  uint32_t collection = kNone;
  if (!choice.collection.empty()) {
    const auto names = facts.snapshot->collections().names();
    const auto found = std::ranges::find(names, choice.collection);
    if (found == names.end()) {
      return missing(fmt::format("There is no collection '{}'.{}", shown(choice.collection),
                                 did_you_mean(choice.collection, names)));
    }
    collection = static_cast<uint32_t>(found - names.begin());
  }
  std::vector<uint32_t> out;
  for (size_t i = begin; i < end; ++i) {
    const Model::Tensor& tensor = model.tensors[i];
    if (choice.role && tensor.role != *choice.role) continue;
    if (choice.mode != Mode::global && (tensor.modes >> index_of(choice.mode) & 1) == 0) continue;
    if (collection != kNone &&
        std::ranges::find(tensor.collections, collection) == tensor.collections.end()) {
      continue;
    }
    if (statistic.is_of(tensor)) out.push_back(tensor.id);
  }
  return out;
}

Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

}  // namespace smd::server
