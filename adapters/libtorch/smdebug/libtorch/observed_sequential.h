#pragma once

// Runs a torch::nn::Sequential element by element, so that inputs and outputs of each element are
// saved: `0_input_0`, or `features.0_input_0` in a model that holds it as `features`. Borrows the
// ModuleHook, which must outlive it; shares the Sequential. One thread at a time.

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "smdebug/libtorch/module_hook.h"
#include "smdebug/libtorch/tensors_in.h"

namespace smdebug::torch_adapter {

class ObservedSequential final {
 public:
  // `name`: its path in the model; empty: looked up there.
  ObservedSequential(ModuleHook& hook, torch::nn::Sequential sequential, std::string name = {})
      : hook_(hook),
        sequential_(std::move(sequential)),
        name_(name.empty() ? hook.name_of(sequential_.ptr().get()) : std::move(name)) {}

  // As torch::nn::SequentialImpl::forward.
  template <typename Output = torch::Tensor, typename... Inputs>
  Output forward(Inputs&&... inputs) {
    if (!hook_.is_step_wanted() || sequential_->is_empty()) {
      return sequential_->template forward<Output>(std::forward<Inputs>(inputs)...);
    }
    const std::vector<torch::Tensor> given = tensors_in(inputs...);
    const auto children = sequential_->named_children();
    size_t at = 0;
    auto element = sequential_->begin();
    torch::nn::AnyValue value = element->any_forward(std::forward<Inputs>(inputs)...);
    std::vector<torch::Tensor> outputs = tensors_in(value);
    hook_.save_call(child_name(children[at].key()), given, outputs);
    for (++element; element != sequential_->end(); ++element) {
      const std::vector<torch::Tensor> taken = std::move(outputs);
      value = element->any_forward(std::move(value));
      outputs = tensors_in(value);
      hook_.save_call(child_name(children[++at].key()), taken, outputs);
    }
    hook_.save_call(name_, given, outputs);
    return value.template get<Output>();
  }
  template <typename... Inputs>
  auto operator()(Inputs&&... inputs) {
    return forward(std::forward<Inputs>(inputs)...);
  }

 private:
  // Python leaves the name of a root out of the paths of its parts.
  std::string child_name(const std::string& key) const {
    return name_.empty() || name_ == hook_.root_name() ? key : name_ + "." + key;
  }

  ModuleHook& hook_;
  torch::nn::Sequential sequential_;
  const std::string name_;
};

}  // namespace smdebug::torch_adapter
