#include "smd/watch/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace smd::watch {
namespace {

using rules::Statistic;
using rules::StatisticSet;

// Of a tensor with several elements, whose reductions have these values.
bool follow(StatisticSet wanted, StatisticSet stored) {
  rules::Statistics statistics;
  stored.for_each([&](Statistic one) { statistics.set(one, 1); });
  rules::derive(wanted, nullptr, statistics);
  return statistics.present.contains_all(wanted);
}

const rules::CollectionRequest* request_of(const rules::RuleKind& kind, std::string_view name) {
  const auto at = std::ranges::find(kind.collections, name, &rules::CollectionRequest::collection);
  return at == kind.collections.end() ? nullptr : &*at;
}

void apply(const rules::CollectionRequest& request, SaveWish& wish) {
  for (const auto& [name, value] : request.settings) {
    if (name == "include_regex") wish.include_regex.emplace_back(value);
    int64_t interval = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), interval);
    if (name == "save_interval" && parsed.ec == std::errc()) wish.default_interval = interval;
  }
}

}  // namespace

std::optional<ReductionSet> reductions_for(StatisticSet statistics) {
  // The value of a single number follows from each reduction of it, and nothing else has one.
  StatisticSet wanted = statistics.without({Statistic::value});
  StatisticSet stored;
  rules::sources_of(wanted).for_each([&](Statistic one) {
    if (rules::reduction_of(one)) stored.add(one);
  });
  if (!follow(wanted, stored)) return std::nullopt;
  const StatisticSet all = stored;
  // What is asked for by name stays, so others go first.
  for (const bool asked : {false, true}) {
    all.for_each([&](Statistic one) {
      if (wanted.contains(one) == asked && follow(wanted, stored.without({one}))) {
        stored = stored.without({one});
      }
    });
  }
  ReductionSet out;
  stored.for_each([&](Statistic one) { out.add(*rules::reduction_of(one)); });
  return out;
}

Result<std::vector<SaveWish>> needs_of(const rules::Evaluation& evaluation,
                                       std::optional<int64_t> save_interval) {
  std::optional<SaveConfig> when;
  if (save_interval) {
    SMD_TRY(when, SaveConfig::broadcast({.save_interval = *save_interval}));
  }
  std::vector<SaveWish> out;
  size_t own_collections = 0;
  for (const rules::Selection* selection : evaluation.selections()) {
    const rules::SelectionOptions& options = selection->options();
    const auto reductions = reductions_for(options.statistics);
    const bool raw = options.values || !reductions;
    const auto wish_for = [&](std::string collection) {
      return SaveWish{.collection = std::move(collection),
                      .save_config = when,
                      .raw = raw,
                      .reductions = raw ? ReductionSet{} : *reductions};
    };
    for (const std::string& name : options.collections) {
      SaveWish wish = wish_for(name);
      if (const auto* request = request_of(evaluation.kind(), name)) apply(*request, wish);
      out.push_back(std::move(wish));
    }
    if (options.patterns.empty()) continue;
    const std::string base = fmt::format("rule_{}", rules::snake_name(evaluation.kind()));
    ++own_collections;
    SaveWish wish =
        wish_for(own_collections == 1 ? base : fmt::format("{}_{}", base, own_collections));
    wish.include_regex = options.patterns;
    wish.exclude_regex = options.exclude;
    out.push_back(std::move(wish));
  }
  return out;
}

}  // namespace smd::watch
