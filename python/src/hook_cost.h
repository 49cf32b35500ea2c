#pragma once

// What a callback does is a cost of recording: from the beginning of this object to its end.

#include "smd/hook/hook.h"

namespace smdebug {

class HookCost final {
 public:
  // nullptr: nobody counts.
  explicit HookCost(smd::Hook* hook) : hook_(hook) {
    if (hook_ != nullptr) hook_->enter_cost();
  }
  ~HookCost() {
    if (hook_ != nullptr) hook_->leave_cost();
  }
  HookCost(const HookCost&) = delete;
  HookCost& operator=(const HookCost&) = delete;

 private:
  smd::Hook* hook_;
};

}  // namespace smdebug
