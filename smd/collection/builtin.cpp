#include "smd/collection/builtin.h"

#include <algorithm>
#include <array>

namespace smd {
namespace {

namespace keys = collection_keys;

constexpr std::array kKnownCollections = {
    keys::kDefault,       keys::kAll,         keys::kInputs,            keys::kOutputs,
    keys::kWeights,       keys::kGradients,   keys::kLosses,            keys::kBiases,
    keys::kLayers,        keys::kSmMetrics,   keys::kOptimizerVariables, keys::kMetrics,
    keys::kHyperparameters, keys::kPredictions, keys::kLabels,          keys::kFeatureImportance,
    keys::kAverageShap,   keys::kFullShap,    keys::kTrees,             keys::kScalars};
constexpr std::array kScalarCollections = {keys::kLosses, keys::kMetrics, keys::kSmMetrics,
                                           keys::kFeatureImportance, keys::kAverageShap};
constexpr std::array kMetricCollections = {keys::kLosses, keys::kMetrics, keys::kSmMetrics};
constexpr std::array kTrainingCollections = {keys::kGradients, keys::kOptimizerVariables};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_known_collection(std::string_view name) { return contains(kKnownCollections, name); }

bool is_scalar_collection(std::string_view name) { return contains(kScalarCollections, name); }

bool is_metric_collection(std::string_view name) { return contains(kMetricCollections, name); }

bool is_training_collection(std::string_view name) { return contains(kTrainingCollections, name); }

std::vector<BuiltinCollection> plain_collections() {
  return {
      {.name = std::string(keys::kAll)},
      {.name = std::string(keys::kDefault)},
      {.name = std::string(keys::kWeights), .patterns = {"^(?!gradient).*weight"}},
      {.name = std::string(keys::kBiases), .patterns = {"^(?!gradient).*bias"}},
      {.name = std::string(keys::kGradients), .patterns = {"^gradient"}},
      {.name = std::string(keys::kLosses),
       .patterns = {"^(?!gradient).*[Ll]oss(?!_input)"},
       .raw_only = true},
  };
}

std::vector<std::string> plain_default_collections() { return {std::string(keys::kLosses)}; }

Status add_builtin_collections(CollectionSet& set, std::span<const BuiltinCollection> table) {
  for (const BuiltinCollection& builtin : table) {
    SMD_TRY(const auto collection, set.create(builtin.name));
    for (const std::string& pattern : builtin.patterns) {
      SMD_RETURN_IF_ERROR(collection->include(pattern));
    }
  }
  return {};
}

}  // namespace smd
