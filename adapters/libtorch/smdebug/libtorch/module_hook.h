#pragma once

// Records one model: its parameters and their gradients by itself, inputs and outputs of the
// modules that are called through it. Borrows the hook and the model, which must outlive it.
// One ModuleHook per hook. One thread at a time; gradients may arrive on other threads.
//
// On steps that save nothing it costs what smd::Hook::begin_step costs, and call() only calls.
// Tensors are read where they are, before the functions return; tensors on a device are copied to
// the host, which waits for the device.

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "smd/smd.h"
#include "smdebug/libtorch/gradients.h"
#include "smdebug/libtorch/module_names.h"
#include "smdebug/libtorch/recorder.h"
#include "smdebug/libtorch/tensors_in.h"

namespace smdebug::torch_adapter {

template <typename M>
concept Text = std::is_convertible_v<const M&, std::string_view>;

// Calls the forward of a module, or of the one that it points to.
template <typename M, typename... Args>
auto forward(M& module, Args&&... args) {
  if constexpr (requires { module->forward(std::forward<Args>(args)...); }) {
    return module->forward(std::forward<Args>(args)...);
  } else {
    return module.forward(std::forward<Args>(args)...);
  }
}

class ModuleHook final {
 public:
  // One step: begins where it is made and ends where it goes out of scope, so that readers see it.
  class Step final {
   public:
    ~Step() { end(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    bool is_wanted() const { return scope_.is_wanted(); }
    // Ends the step now and gives its first error, as smd::StepScope does.
    const smd::Status& end() {
      owner_.end(serial_);
      return scope_.end();
    }

   private:
    friend class ModuleHook;
    Step(ModuleHook& owner, smd::Mode mode)
        : owner_(owner), scope_(owner.recorder_.hook(), mode), serial_(owner.begun()) {}

    ModuleHook& owner_;
    smd::StepScope scope_;
    int64_t serial_;
  };

  // `root_name` is what names of parameters begin with; empty: the name of the model's class.
  ModuleHook(smd::Hook& hook, const torch::nn::Module& module, std::string root_name = {})
      : recorder_(hook), module_(module), names_(module, std::move(root_name)) {
    if (names_.parameters().empty()) {
      recorder_.complain("'" + names_.prefix() +
                         "' has no parameters, so there are no weights and gradients to record; "
                         "its parts must be registered with register_module().");
    }
  }
  ModuleHook(const ModuleHook&) = delete;
  ModuleHook& operator=(const ModuleHook&) = delete;

  // Begins a step of training if the model is training and gradients are computed, else one of
  // evaluation. Saves the parameters, and attaches callbacks for their gradients if they are
  // wanted.
  [[nodiscard]] Step begin_step() {
    const bool training = module_.is_training() && torch::GradMode::is_enabled();
    return begin_step(training ? smd::Mode::train : smd::Mode::eval);
  }
  [[nodiscard]] Step begin_step(smd::Mode mode) { return {*this, mode}; }

  // Calls a module and saves `<name>_input_<i>` and `<name>_output_<i>`. A module may be a holder
  // such as torch::nn::Linear, a pointer or a reference to a module.
  template <typename M, typename... Args>
  auto call(std::string_view name, M&& module, Args&&... args) {
    return observe([&](const auto&) { return std::string(name); }, module,
                   std::forward<Args>(args)...);
  }
  // Under its path in the model, or the root's name.
  template <typename M, typename... Args>
  requires(!Text<M>) auto call(M&& module, Args&&... args) {
    return observe([&](const auto* inner) { return names_.find(inner); }, module,
                   std::forward<Args>(args)...);
  }
  // Under its path in the model, or the name of the variable. For SMDEBUG_CALL.
  template <typename M, typename... Args>
  auto call_member(std::string_view expression, M&& module, Args&&... args) {
    const auto name = [&](const auto* inner) {
      std::string path = names_.find(inner);
      return path.empty() ? member_name(expression) : path;
    };
    return observe(name, module, std::forward<Args>(args)...);
  }

  // Saves a loss as `<name>_output_<i>`, in the collection `losses`, and gives it back.
  torch::Tensor loss(std::string_view name, const torch::Tensor& value) {
    if (recorder_.is_step_wanted()) {
      recorder_.guarded("A loss cannot be saved", [&] { save_loss(std::string(name), value); });
    }
    return value;
  }
  // Calls a loss such as torch::nn::CrossEntropyLoss; its inputs are saved, too. The name is that
  // of its class.
  template <typename M, typename... Args>
  requires(!Text<M>) auto loss(M&& module, Args&&... args) {
    if (!recorder_.is_step_wanted()) return forward(module, std::forward<Args>(args)...);
    const std::vector<torch::Tensor> inputs = tensors_in(args...);
    auto output = forward(module, std::forward<Args>(args)...);
    recorder_.guarded("A loss cannot be saved", [&] {
      const torch::nn::Module* inner = module_in(module);
      const std::string name = inner == nullptr ? std::string() : class_name(*inner);
      save_all(name, "_input", inputs);
      for (const torch::Tensor& value : tensors_in(output)) save_loss(name, value);
    });
    return output;
  }

  // Offers a tensor: it is saved as the collections that hold its name want it.
  void save(std::string_view name, const torch::Tensor& tensor) {
    if (recorder_.is_step_wanted()) offer(std::string(name), tensor);
  }

  bool is_step_wanted() const { return recorder_.is_step_wanted(); }
  const std::string& root_name() const { return names_.prefix(); }
  // The name of a part of the model; empty if it is none.
  std::string name_of(const torch::nn::Module* module) { return names_.find(module); }
  // Inputs and outputs of a call, for those who call a module themselves. An empty name is none.
  void save_call(const std::string& name, const std::vector<torch::Tensor>& inputs,
                 const std::vector<torch::Tensor>& outputs) {
    save_all(name, "_input", inputs);
    save_all(name, "_output", outputs);
  }
  // The first failure that went to the log.
  const smd::Status& status() const { return recorder_.status(); }
  // Parameters with a callback now.
  size_t attached_gradients() const { return gradients_.size(); }

 private:
  template <typename Name, typename M, typename... Args>
  auto observe(const Name& name_of, M& module, Args&&... args) {
    if (!recorder_.is_step_wanted()) return forward(module, std::forward<Args>(args)...);
    // An argument may be moved from; a module that works in place shows its modified input, as in
    // Python.
    const std::vector<torch::Tensor> inputs = tensors_in(args...);
    auto output = forward(module, std::forward<Args>(args)...);
    recorder_.guarded("The call of a module cannot be saved", [&] {
      const torch::nn::Module* inner = module_in(module);
      const std::string name = name_of(inner);
      if (name.empty()) {
        return recorder_.complain(
            "A module" + (inner == nullptr ? "" : " of the class " + class_name(*inner)) +
            " was called without a name and is no part of '" + names_.prefix() +
            "', so its inputs and outputs are not saved; use call(\"name\", …).");
      }
      save_call(name, inputs, tensors_in(output));
    });
    return output;
  }

  void save_all(const std::string& name, const char* ending,
                const std::vector<torch::Tensor>& tensors) {
    for (const torch::Tensor& tensor : tensors) {
      if (!name.empty()) offer(recorder_.next_name(name + ending), tensor);
    }
  }

  void save_loss(const std::string& name, const torch::Tensor& value) {
    if (name.empty()) {
      return recorder_.complain(
          "A loss without a name is not saved; give it one that ends in 'Loss', such as "
          "'CrossEntropyLoss'.");
    }
    if (!value.defined()) {
      return recorder_.complain("The loss '" + name + "' is an undefined tensor.");
    }
    if (value.numel() != 1) {
      std::ostringstream shape;
      shape << value.sizes();
      recorder_.complain("The loss '" + name + "' has the shape " + shape.str() +
                         " and is no single number; it is saved as it is.");
    }
    offer(recorder_.next_name(name + "_output"), value, smd::Kind::loss);
  }

  // A number for the step that has begun.
  int64_t begun() {
    const std::lock_guard lock(recorder_.mutex());
    gradients_.detach();
    recorder_.restart_names();
    active_ = 0;
    if (recorder_.is_step_wanted()) {
      recorder_.guarded("The parameters cannot be saved", [&] {
        names_.refresh();
        active_ = active_collections();
        offer_parameters();
      });
    }
    return ++serial_;
  }

  void end(int64_t serial) {
    const std::lock_guard lock(recorder_.mutex());
    if (serial == serial_) gradients_.detach();
  }

  void offer_parameters() {
    for (const auto& [name, parameter] : names_.parameters()) {
      offer(name, parameter);
      const std::string gradient = "gradient/" + name;
      recorder_.guarded("The gradient of '" + name + "' cannot be saved", [&] {
        if (!recorder_.hook().wants(gradient)) return;
        gradients_.attach(
            gradient, parameter,
            [this](const std::string& known, const torch::Tensor& value) { offer(known, value); });
      });
    }
  }

  void offer(const std::string& name, const torch::Tensor& tensor,
             smd::Kind kind = smd::Kind::automatic) {
    const std::lock_guard lock(recorder_.mutex());
    recorder_.save(name, tensor, kind);
    const size_t active = active_collections();
    if (active > active_) {
      // A NaN was found: the collections that wait for it begin to save at once.
      active_ = active;
      offer_parameters();
    }
  }

  size_t active_collections() {
    const auto& all = recorder_.hook().collections().collections();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& collection) {
      return recorder_.hook().is_collection_active(collection->name());
    }));
  }

  Recorder recorder_;
  const torch::nn::Module& module_;
  ModuleNames names_;
  Gradients gradients_;
  size_t active_ = 0;   // collections that save at this step
  int64_t serial_ = 0;  // of the current step
};

// The same with a model that may run without a hook: nullptr only calls.
template <typename M, typename... Args>
auto call_member(ModuleHook* hook, std::string_view expression, M&& module, Args&&... args) {
  if (hook == nullptr) return forward(module, std::forward<Args>(args)...);
  return hook->call_member(expression, module, std::forward<Args>(args)...);
}
template <typename M, typename... Args>
auto call_member(ModuleHook& hook, std::string_view expression, M&& module, Args&&... args) {
  return hook.call_member(expression, module, std::forward<Args>(args)...);
}

}  // namespace smdebug::torch_adapter

// x = SMDEBUG_CALL(hook, fc1, x): calls fc1 and saves its inputs and outputs under its path in the
// model, as in Python. `hook` is a ModuleHook or a pointer to one, which may be null.
#define SMDEBUG_CALL(hook, module, ...) \
  ::smdebug::torch_adapter::call_member(hook, #module, module, __VA_ARGS__)
