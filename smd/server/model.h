#pragma once

// The tensors of a run as people think of their model: each with its role and its module, in the
// order in which data flows as far as the run tells. Immutable once made, thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/trial/snapshot.h"

namespace smd::server {

enum class Role : uint8_t {
  weight,
  bias,
  gradient,
  activation,
  input,
  loss,
  metric,
  optimizer,
  other
};
inline constexpr size_t kRoleCount = static_cast<size_t>(Role::other) + 1;
// "weight".
std::string_view name_of(Role role);
std::span<const std::string_view> role_names();

struct Model {
  struct Tensor {
    uint32_t id = 0;  // of Names::tensors
    uint32_t module = 0;
    Role role = Role::other;
    bool has_value = false;             // at some step
    bool is_number = false;             // its value surely is a single number
    bool may_be_number = false;         // as far as can be told without reading it
    uint8_t modes = 0;                  // bit index_of(mode)
    std::vector<uint32_t> collections;  // in the order of the set
    std::vector<uint32_t> slots;        // stored reductions, as numbers of Slot
  };
  // A node of the tree. Its tensors, and those below it, stand together.
  struct Module {
    std::string path;
    std::string name;
    uint32_t parent = kNone;  // of the root
    uint32_t first = 0;
    uint32_t count = 0;
  };

  std::vector<Tensor> tensors;
  std::vector<Module> modules;      // parents before children; the first is the root
  std::vector<uint32_t> positions;  // in tensors, by id; kNone: not there

  // nullptr: no such tensor.
  const Tensor* find(uint32_t id) const {
    return id < positions.size() && positions[id] != kNone ? &tensors[positions[id]] : nullptr;
  }
};

// The module that a tensor belongs to, as far as its name tells; empty: none.
std::string_view module_of(std::string_view tensor);
// What a gradient is the gradient of; empty: the name is not that of a gradient.
std::string_view gradient_target(std::string_view tensor);

// Tensors that some step holds. Siblings in the tree stand by their number where their names are
// numbers, and by the first save of something that is no gradient otherwise, as gradients arrive in
// the opposite order.
Model make_model(const Snapshot& snapshot);

}  // namespace smd::server
