#pragma once

// How modules and parameters are called, as the Python package calls them: parameters after the
// root's class and their path, modules after their path. One thread at a time.

#include <torch/torch.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace smdebug::torch_adapter {

// The class of a module without namespaces, and without the ending `Impl` of libtorch's classes.
inline std::string class_name(const torch::nn::Module& module) {
  std::string name = module.name();
  size_t end = name.find('<');
  if (end == std::string::npos) end = name.size();
  const size_t colons = name.rfind("::", end);
  if (colons != std::string::npos) name.erase(0, colons + 2);
  constexpr std::string_view kEnding = "Impl";
  if (name.size() > kEnding.size() && name.ends_with(kEnding)) {
    name.resize(name.size() - kEnding.size());
  }
  return name;
}

// The last word of what stands in a program for a member: `fc1` of `this->fc1`.
inline std::string member_name(std::string_view expression) {
  const size_t at = expression.find_last_of(".>: *&(");
  if (at != std::string_view::npos) expression.remove_prefix(at + 1);
  while (!expression.empty() && (expression.back() == ')' || expression.back() == ' ')) {
    expression.remove_suffix(1);
  }
  return std::string(expression);
}

// The module behind what holds one: ModuleHolder, shared pointer, AnyModule, or itself.
template <typename M>
const torch::nn::Module* module_in(const M& holder) {
  if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
    return &holder;
  } else if constexpr (requires { holder.ptr().get(); }) {
    return holder.ptr().get();
  } else if constexpr (requires { static_cast<const torch::nn::Module*>(holder.get()); }) {
    return holder.get();
  } else {
    return nullptr;
  }
}

// Borrows the root, which must outlive it.
class ModuleNames final {
 public:
  ModuleNames(const torch::nn::Module& root, std::string prefix)
      : root_(root), prefix_(prefix.empty() ? class_name(root) : std::move(prefix)) {
    refresh();
  }

  const std::string& prefix() const { return prefix_; }

  // Modules may come and go between steps.
  void refresh() {
    names_.clear();
    for (const auto& item : root_.named_modules("", /*include_self=*/false)) {
      names_.try_emplace(item.value().get(), item.key());
    }
  }

  // (name, parameter); a shared one once, under its first path.
  std::vector<std::pair<std::string, torch::Tensor>> parameters() const {
    std::vector<std::pair<std::string, torch::Tensor>> found;
    std::unordered_set<const c10::TensorImpl*> seen;
    for (const auto& item : root_.named_parameters()) {
      if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second) {
        continue;
      }
      found.emplace_back(prefix_ + "_" + item.key(), item.value());
    }
    return found;
  }

  // Empty: the module is no part of the root.
  std::string find(const torch::nn::Module* module) {
    if (module == nullptr) return {};
    if (module == &root_) return prefix_;
    auto known = names_.find(module);
    if (known == names_.end()) {
      refresh();  // it may be new
      known = names_.find(module);
    }
    return known == names_.end() ? std::string() : known->second;
  }

 private:
  const torch::nn::Module& root_;
  const std::string prefix_;
  std::unordered_map<const torch::nn::Module*, std::string> names_;
};

}  // namespace smdebug::torch_adapter
