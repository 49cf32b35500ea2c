#pragma once

// The collections that everybody knows by name, and the type of table in which an adapter lists the
// ones of its framework. Immutable data and pure functions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/collection/collection_set.h"

namespace smd {

// Names of collections. Python shows them as CollectionKeys.
namespace collection_keys {
inline constexpr std::string_view kDefault = "default";
inline constexpr std::string_view kAll = "all";
inline constexpr std::string_view kInputs = "inputs";
inline constexpr std::string_view kOutputs = "outputs";
inline constexpr std::string_view kWeights = "weights";
inline constexpr std::string_view kGradients = "gradients";
inline constexpr std::string_view kLosses = "losses";
inline constexpr std::string_view kBiases = "biases";
inline constexpr std::string_view kLayers = "layers";
inline constexpr std::string_view kSmMetrics = "sm_metrics";
inline constexpr std::string_view kOptimizerVariables = "optimizer_variables";
inline constexpr std::string_view kMetrics = "metrics";
inline constexpr std::string_view kHyperparameters = "hyperparameters";
inline constexpr std::string_view kPredictions = "predictions";
inline constexpr std::string_view kLabels = "labels";
inline constexpr std::string_view kFeatureImportance = "feature_importance";
inline constexpr std::string_view kAverageShap = "average_shap";
inline constexpr std::string_view kFullShap = "full_shap";
inline constexpr std::string_view kTrees = "trees";
// Made with the first scalar; holds every name below "scalar/".
inline constexpr std::string_view kScalars = "scalars";
// An older name.
inline constexpr std::string_view kSearchableScalars = kSmMetrics;
}  // namespace collection_keys

// One of the names above: may be saved although nothing is known of its tensors yet.
bool is_known_collection(std::string_view name);
// One number per step: shown as a scalar, saved as it is, never reduced, without histogram.
bool is_scalar_collection(std::string_view name);
// Its means also go to the job's metrics file.
bool is_metric_collection(std::string_view name);
// Saved only while training: not in the modes EVAL and PREDICT.
bool is_training_collection(std::string_view name);

struct BuiltinCollection {
  std::string name = {};
  std::vector<std::string> patterns = {};
  // Saved as it is, without reductions and histograms. Scalar collections are so anyway.
  bool raw_only = false;

  bool operator==(const BuiltinCollection&) const = default;
};

// For a hook without a framework, in the order in which they are created.
std::vector<BuiltinCollection> plain_collections();
// What a hook without a framework saves unless told otherwise.
std::vector<std::string> plain_default_collections();

// Creates the collections of `table` and adds their patterns. Error for an invalid pattern.
Status add_builtin_collections(CollectionSet& set, std::span<const BuiltinCollection> table);

}  // namespace smd
