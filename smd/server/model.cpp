#include "smd/server/model.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "smd/collection/builtin.h"

namespace smd::server {
namespace {

constexpr std::array<std::string_view, kRoleCount> kRoleNames = {
    "weight", "bias", "gradient", "activation", "input", "loss", "metric", "optimizer", "other"};
// What is deeper stays one name, so that a name without end makes no tree without end.
constexpr size_t kMostDepth = 32;
// Longer records hold more than a number; see Trial::read_single_numbers().
constexpr uint64_t kMostNumberBytes = 4096;
constexpr uint64_t kLast = UINT64_MAX;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "relu_output_0" is "relu" and "output"; both empty if the name does not end so.
std::pair<std::string_view, std::string_view> module_value(std::string_view name) {
  const size_t number = name.rfind('_');
  if (number == std::string_view::npos || !is_digits(name.substr(number + 1))) return {};
  const std::string_view rest = name.substr(0, number);
  for (const std::string_view end : {"_output", "_input"}) {
    if (rest.ends_with(end)) return {rest.substr(0, rest.size() - end.size()), end.substr(1)};
  }
  return {};
}

// Which of the well-known collections hold a tensor.
struct Groups {
  bool weights = false;
  bool biases = false;
  bool gradients = false;
  bool losses = false;
  bool metrics = false;
  bool optimizer = false;
  bool inputs = false;
  bool outputs = false;

  void add(std::string_view collection) {
    using namespace collection_keys;
    weights = weights || collection == kWeights;
    biases = biases || collection == kBiases;
    gradients = gradients || collection == kGradients;
    losses = losses || collection == kLosses;
    metrics =
        metrics || collection == kMetrics || collection == kScalars || collection == kSmMetrics;
    optimizer = optimizer || collection == kOptimizerVariables;
    inputs = inputs || collection == kInputs;
    outputs = outputs || collection == kOutputs || collection == kLayers;
  }
};

Role role_of(std::string_view name, const Groups& in) {
  if (in.losses) return Role::loss;
  if (in.gradients || !gradient_target(name).empty()) return Role::gradient;
  if (in.metrics || name.starts_with("scalar/")) return Role::metric;
  if (in.optimizer) return Role::optimizer;
  const auto last = name.substr(name.find_last_of("./") + 1);
  if (in.biases || last == "bias") return Role::bias;
  if (in.weights || last == "weight") return Role::weight;
  const std::string_view way = module_value(name).second;
  if (way == "output" || in.outputs) return Role::activation;
  if (way == "input" || in.inputs) return Role::input;
  return Role::other;
}

// Among the tensors of one module.
int rank_of(Role role) {
  switch (role) {
    case Role::input: return 0;
    case Role::weight: return 1;
    case Role::bias: return 2;
    case Role::activation: return 3;
    case Role::gradient: return 4;
    case Role::optimizer: return 5;
    default: return 6;
  }
}

class ModelMaker final {
 public:
  explicit ModelMaker(const Snapshot& snapshot) : snapshot_(snapshot) {}

  Model make() {
    gather();
    assign_roles();
    nodes_.push_back({});
    for (const bool gradients : {false, true}) {
      for (Model::Tensor& tensor : tensors_) {
        if ((tensor.role == Role::gradient) == gradients) place(tensor);
      }
    }
    return ordered();
  }

 private:
  struct Node {
    std::string_view path{};
    std::string_view name{};
    uint32_t parent = kNone;
    uint64_t first_save = kLast;      // of something that is no gradient
    uint64_t first_gradient = kLast;  // its place counted from the end
    std::vector<uint32_t> children{};
    std::vector<uint32_t> tensors{};  // in tensors_
  };

  // What is stored of which tensor, from the few distinct layouts.
  void gather() {
    const uint32_t count = snapshot_.names().tensors.size();
    std::vector<uint32_t> places(count, kNone);
    std::set<std::pair<uint32_t, Mode>> seen;
    for (size_t i = 0; i < snapshot_.row_count(); ++i) {
      const StepRow& row = snapshot_.row(i);
      snapshot_.for_each_part(row, [&](uint32_t, const Part& part) {
        if (!seen.emplace(part.layout, row.info.mode).second) return;
        const Layout& layout = snapshot_.layout_of(part);
        for (const uint32_t id : layout.tensors()) {
          if (places[id] == kNone) {
            places[id] = static_cast<uint32_t>(tensors_.size());
            tensors_.push_back({.id = id});
          }
          add(layout, row.info.mode, tensors_[places[id]]);
        }
      });
    }
    std::ranges::sort(tensors_, {}, &Model::Tensor::id);
  }

  static void add(const Layout& layout, Mode mode, Model::Tensor& tensor) {
    tensor.modes = static_cast<uint8_t>(tensor.modes | 1u << index_of(mode));
    for (const Layout::Entry& entry : layout.entries_of(tensor.id)) {
      if (entry.slot == Slot::value().id()) {
        tensor.has_value = true;
        const bool is_record = entry.form == Layout::Form::record;
        tensor.is_number = entry.form == Layout::Form::number || entry.form == Layout::Form::scalar;
        tensor.may_be_number = tensor.may_be_number || tensor.is_number ||
                               (is_record && entry.length <= kMostNumberBytes);
      } else if (std::ranges::find(tensor.slots, entry.slot) == tensor.slots.end()) {
        tensor.slots.push_back(entry.slot);
      }
    }
  }

  void assign_roles() {
    const auto& collections = snapshot_.collections().collections();
    for (Model::Tensor& tensor : tensors_) {
      const std::string& name = snapshot_.names().tensors[tensor.id];
      Groups groups;
      for (uint32_t i = 0; i < collections.size(); ++i) {
        if (!collections[i]->holds(name)) continue;
        tensor.collections.push_back(i);
        groups.add(collections[i]->name());
      }
      tensor.role = role_of(name, groups);
    }
  }

  void place(Model::Tensor& tensor) {
    const std::string_view path = module_of(snapshot_.names().tensors[tensor.id]);
    uint32_t node = 0;
    note(node, tensor);
    size_t begin = 0;
    for (size_t depth = 0; begin < path.size(); ++depth) {
      size_t end = depth + 1 == kMostDepth ? path.size() : path.find_first_of("./", begin);
      end = std::min(end, path.size());
      node = child(node, path.substr(0, end), path.substr(begin, end - begin));
      note(node, tensor);
      begin = end + 1;
    }
    nodes_[node].tensors.push_back(static_cast<uint32_t>(&tensor - tensors_.data()));
  }

  void note(uint32_t node, const Model::Tensor& tensor) {
    uint64_t& first =
        tensor.role == Role::gradient ? nodes_[node].first_gradient : nodes_[node].first_save;
    const uint64_t at = tensor.role == Role::gradient ? UINT32_MAX - tensor.id : tensor.id;
    first = std::min(first, at);
  }

  uint32_t child(uint32_t parent, std::string_view path, std::string_view name) {
    const auto [at, is_new] = by_path_.try_emplace(path, static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.push_back({.path = path, .name = name, .parent = parent});
      nodes_[parent].children.push_back(at->second);
    }
    return at->second;
  }

  void sort_children(Node& node) const {
    const bool are_numbers =
        std::ranges::all_of(node.children, [&](uint32_t c) { return is_digits(nodes_[c].name); });
    std::ranges::stable_sort(node.children, [&](uint32_t a, uint32_t b) {
      const Node& x = nodes_[a];
      const Node& y = nodes_[b];
      if (are_numbers) {
        return std::tuple(x.name.size(), x.name) < std::tuple(y.name.size(), y.name);
      }
      return std::tuple(x.first_save, x.first_gradient) <
             std::tuple(y.first_save, y.first_gradient);
    });
  }

  Model ordered() {
    Model out;
    std::vector<uint32_t> places(nodes_.size(), kNone);  // in out.modules
    std::vector<uint32_t> pending = {0};
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      Node& node = nodes_[at];
      places[at] = static_cast<uint32_t>(out.modules.size());
      out.modules.push_back({.path = std::string(node.path),
                             .name = std::string(node.name),
                             .parent = node.parent == kNone ? kNone : places[node.parent],
                             .first = static_cast<uint32_t>(out.tensors.size())});
      std::ranges::stable_sort(node.tensors, {},
                               [&](uint32_t t) { return rank_of(tensors_[t].role); });
      for (const uint32_t t : node.tensors) {
        out.tensors.push_back(std::move(tensors_[t]));
        out.tensors.back().module = places[at];
      }
      sort_children(node);
      pending.insert(pending.end(), node.children.rbegin(), node.children.rend());
    }
    for (size_t i = out.modules.size(); i-- > 0;) {
      Model::Module& module = out.modules[i];
      // Children stand behind their parents and have added theirs by now.
      module.count += own_count(out, static_cast<uint32_t>(i), module.first);
      if (module.parent != kNone) out.modules[module.parent].count += module.count;
    }
    out.positions.assign(snapshot_.names().tensors.size(), kNone);
    for (uint32_t i = 0; i < out.tensors.size(); ++i) out.positions[out.tensors[i].id] = i;
    return out;
  }

  static uint32_t own_count(const Model& model, uint32_t module, uint32_t first) {
    uint32_t end = first;
    while (end < model.tensors.size() && model.tensors[end].module == module) ++end;
    return end - first;
  }

  const Snapshot& snapshot_;
  std::vector<Model::Tensor> tensors_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string_view, uint32_t> by_path_;
};

}  // namespace

std::string_view name_of(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::span<const std::string_view> role_names() { return kRoleNames; }

std::string_view gradient_target(std::string_view tensor) {
  for (const std::string_view prefix : {"gradient/", "gradients/"}) {
    if (tensor.starts_with(prefix)) return tensor.substr(prefix.size());
  }
  return {};
}

std::string_view module_of(std::string_view tensor) {
  if (const std::string_view target = gradient_target(tensor); !target.empty()) tensor = target;
  if (tensor.starts_with("scalar/")) return {};
  if (const auto value = module_value(tensor); !value.second.empty()) return value.first;
  const size_t end = tensor.find_last_of("./");
  return end == std::string_view::npos ? std::string_view() : tensor.substr(0, end);
}

Model make_model(const Snapshot& snapshot) { return ModelMaker(snapshot).make(); }

}  // namespace smd::server
