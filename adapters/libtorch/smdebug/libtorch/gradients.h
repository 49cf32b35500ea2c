#pragma once

// Callbacks on the parameters of one step: each hands its gradient over, as this backward has
// computed it, before it is added to what the parameter holds. One thread at a time; the callbacks
// themselves run on the threads of backward.

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "smdebug/libtorch/recorder.h"

namespace smdebug::torch_adapter {

class Gradients final {
 public:
  using Save = std::function<void(const std::string& name, const torch::Tensor& gradient)>;

  // Forgets the callbacks of a model that is still there: they take themselves to be off.
  ~Gradients() { detach(); }

  // Once per parameter. `save` is not called any more after detach().
  void attach(const std::string& name, const torch::Tensor& parameter, const Save& save) {
    if (!parameter.requires_grad() || !parameter.is_leaf()) return;
    if (handles_.contains(parameter.unsafeGetTensorImpl())) return;
    if (!alive_) alive_ = std::make_shared<bool>(true);
    const unsigned position = parameter.register_hook(
        [name, save, alive = std::weak_ptr(alive_)](const torch::Tensor& gradient) {
          if (!alive.expired()) save(name, gradient);
        });
    handles_.emplace(parameter.unsafeGetTensorImpl(), Handle{parameter, position});
  }

  void detach() noexcept {
    alive_.reset();
    for (auto& [parameter, handle] : handles_) {
      try {
        handle.parameter.remove_hook(handle.position);
        give_back_slot(handle.parameter, handle.position);
      } catch (const c10::Error&) {
        // Somebody has cleared the callbacks of the parameter.
      }
    }
    handles_.clear();
  }

  size_t size() const { return handles_.size(); }

 private:
  struct Handle {
    torch::Tensor parameter;
    unsigned position;
  };

  // remove_hook() leaves an empty place in a list that every backward walks through: it would grow
  // with each saved step. Where the list can be reached, our place at its end goes, too.
  template <typename T>
  static void give_back_slot(const T& parameter, unsigned position) {
    auto* meta = torch::autograd::impl::get_autograd_meta(parameter);
    if constexpr (requires { meta->cpp_hooks_list_->pop_back(); }) {
      if (meta == nullptr || !meta->cpp_hooks_list_) return;
      if (meta->cpp_hooks_list_->size() == position + 1) meta->cpp_hooks_list_->pop_back();
    }
  }

  std::unordered_map<const c10::TensorImpl*, Handle> handles_;
  std::shared_ptr<bool> alive_;
};

}  // namespace smdebug::torch_adapter
