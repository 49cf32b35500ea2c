#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double threshold = 0;
  size_t nfeatures = 3;
  bool judges_few = false;
};

class FeatureImportanceOverweight final : public Rule {
 public:
  FeatureImportanceOverweight(Selection importances, const Options& options)
      : importances_(std::move(importances)), options_(options) {}

  std::vector<Selection*> selections() override { return {&importances_}; }

  Status observe(const StepView& step, Hits& hits) override {
    std::map<uint32_t, std::vector<Feature>> by_worker;
    importances_.for_each(step, [&](const TensorRow& row) {
      const double importance = step.number(row, Statistic::value);
      by_worker[row.worker].push_back({&row, importance > 0 ? importance : 0});
    });
    for (auto& [worker, features] : by_worker) judge(step, features, hits);
    return {};
  }

 private:
  struct Feature {
    const TensorRow* row = nullptr;
    double importance = 0;
  };

  void judge(const StepView& step, std::vector<Feature>& features, Hits& hits) const {
    if (features.size() <= options_.nfeatures && !options_.judges_few) return;
    double total = 0;
    for (const Feature& feature : features) total += feature.importance;
    if (!(total > 0)) return;
    // Equal ones in the order of their names.
    std::ranges::stable_sort(features, std::ranges::greater(), &Feature::importance);
    features.resize(std::min(features.size(), options_.nfeatures));
    double top = 0;
    for (const Feature& feature : features) top += feature.importance;
    if (!(top / total > options_.threshold)) return;
    const auto name = [&](const Feature& feature) {
      const std::string& tensor = step.tensor(*feature.row);
      return tensor.substr(tensor.rfind('/') + 1);
    };
    Violation* hit = hits.add(step, *features.front().row, "top_share", top / total, Op::above,
                              options_.threshold);
    if (hit == nullptr) return;
    Json listed = Json::array();
    for (const Feature& feature : features) {
      listed.push_back({{"feature", name(feature)}, {"share", feature.importance / total}});
    }
    hit->with("top_features", std::move(listed));
    hits.say(fmt::format(
        "{} of the features, led by '{}', hold {:.4g} % of the importance; {:g} % "
        "are accepted.",
        features.size(), name(features.front()), 100 * top / total, 100 * options_.threshold));
  }

  Selection importances_;
  Options options_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "threshold",
     .type = ParameterType::real,
     .default_text = "0.8",
     .help = "Fires when the largest importances make up more than this part of all.",
     .range = "[0,1]"},
    {.name = "nfeatures",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "How many of the largest are added up.",
     .range = "[1,]"},
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = ".*feature_importance/weight",
     .help = "Numbers in whose names one of these patterns is found are importances, one for each "
             "feature."},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kFeatureImportance, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto importances, Selection::create({.what = "importances of features",
                                               .patterns = parameters.list("tensor_regex"),
                                               .statistics = {Statistic::value}},
                                              parameters));
  return make_rule<FeatureImportanceOverweight>(
      std::move(importances),
      Options{.threshold = parameters.real("threshold"),
              .nfeatures = static_cast<size_t>(parameters.integer("nfeatures")),
              .judges_few = parameters.boolean("compat")});
}

}  // namespace

extern const RuleKind feature_importance_overweight;
const RuleKind feature_importance_overweight = {
    .name = "FeatureImportanceOverweight",
    .group = RuleGroup::trees,
    .severity = Severity::warning,
    .summary = "A few features carry the whole model.",
    .sees =
        "The importances of all features at a step; fires when the nfeatures largest make up "
        "more than the threshold. Steps with no more features than that are left out, unless "
        "compat is given.",
    .why =
        "The other features hardly count, so the model fails with those few: when they are "
        "missing, change their meaning, or hold what is to be predicted.",
    .fix =
        "Look at the features that lead: do they contain the answer (leakage), or an id? Remove "
        "or coarsen such ones. Otherwise sample columns (colsample_bytree), regularise, or drop "
        "the features that nobody needs.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
