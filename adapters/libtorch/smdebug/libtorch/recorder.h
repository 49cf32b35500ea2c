#pragma once

// Hands tensors to the core and keeps every failure away from the training: it is logged once, and
// the first is kept. Borrows the hook, which must outlive it. Any thread may call it.

#include <torch/torch.h>

#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "smd/smd.h"
#include "smdebug/libtorch/host_tensor.h"

namespace smdebug::torch_adapter {

class Recorder final {
 public:
  explicit Recorder(smd::Hook& hook) : hook_(hook) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  smd::Hook& hook() { return hook_; }
  // Held while the hook is used.
  std::recursive_mutex& mutex() { return mutex_; }
  bool is_step_wanted() const { return hook_.is_step_wanted(); }

  // `<stem>_<i>`, counted within a step.
  std::string next_name(const std::string& stem) {
    const std::lock_guard lock(mutex_);
    return stem + "_" + std::to_string(indices_[stem]++);
  }
  // A step has begun.
  void restart_names() {
    const std::lock_guard lock(mutex_);
    indices_.clear();
  }

  // Saves what is wanted of a tensor. The values are those of now.
  void save(const std::string& name, const torch::Tensor& tensor,
            smd::Kind kind = smd::Kind::automatic) {
    const std::lock_guard lock(mutex_);
    if (!is_step_wanted()) return;
    guarded("'" + name + "' cannot be saved", [&] {
      // The parts of a sparse tensor have names of their own.
      const bool whole = !tensor.defined() || tensor.layout() != torch::kSparse;
      if (kind == smd::Kind::automatic && whole && !hook_.wants(name)) return;
      auto parts = plain_parts(tensor);
      if (!parts.ok()) return drop(name, parts.error());
      for (const auto& [suffix, plain] : *parts) {
        const auto host = HostTensor::of(plain);
        if (!host.ok()) return drop(name, host.error());
        if (smd::Status saved = hook_.save(name + suffix, host->view(), kind); !saved.ok()) {
          complain(saved.error());
        }
      }
    });
  }

  // Runs a function of ours; what it throws stays here.
  template <typename F>
  void guarded(const std::string& what, F&& function) {
    try {
      function();
    } catch (const c10::Error& error) {
      complain({smd::ErrorCode::internal, what + ": " + error.what_without_backtrace()});
    } catch (const std::exception& error) {
      complain({smd::ErrorCode::internal, what + ": " + error.what()});
    }
  }

  // To the log, unless it was said before, and to status().
  void complain(smd::Error error) {
    const std::lock_guard lock(mutex_);
    hook_.warn_once(error.message);
    if (first_error_.ok()) first_error_ = std::move(error);
  }
  void complain(std::string message) {
    complain(smd::Error{smd::ErrorCode::invalid_argument, std::move(message)});
  }

  const smd::Status& status() const { return first_error_; }

 private:
  void drop(const std::string& name, const smd::Error& error) {
    complain({error.code, "'" + name + "' cannot be saved: " + error.message});
  }

  smd::Hook& hook_;
  mutable std::recursive_mutex mutex_;
  std::map<std::string, int64_t> indices_;
  smd::Status first_error_;
};

}  // namespace smdebug::torch_adapter
