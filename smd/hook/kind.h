#pragma once

// What a tensor is to the model, said by the one who saves it, so that the built-in collections
// need not guess from its name.

#include <cstdint>
#include <string_view>

#include "smd/collection/builtin.h"

namespace smd {

enum class Kind : uint8_t {
  automatic,  // the name's patterns decide
  weight,
  bias,
  gradient,
  loss,
  metric,
  input,
  output,
  layer,
  optimizer_state,
};

// The built-in collection of a kind; empty for automatic.
constexpr std::string_view collection_of(Kind kind) {
  switch (kind) {
    case Kind::automatic: return {};
    case Kind::weight: return collection_keys::kWeights;
    case Kind::bias: return collection_keys::kBiases;
    case Kind::gradient: return collection_keys::kGradients;
    case Kind::loss: return collection_keys::kLosses;
    case Kind::metric: return collection_keys::kMetrics;
    case Kind::input: return collection_keys::kInputs;
    case Kind::output: return collection_keys::kOutputs;
    case Kind::layer: return collection_keys::kLayers;
    case Kind::optimizer_state: return collection_keys::kOptimizerVariables;
  }
  return {};
}

}  // namespace smd
