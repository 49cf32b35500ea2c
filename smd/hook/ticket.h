#pragma once

// The name of a tensor that is saved again and again, with what its hook last found out about it.
// As long as no collection changes and the same collections are due, saving under it looks nothing
// up. Belongs to whoever saves the tensor; good for any hook, but quick with one only. Used by the
// thread that uses the hook.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "smd/hook/kind.h"
#include "smd/hook/save_plan.h"

namespace smd {

class Ticket final {
 public:
  explicit Ticket(std::string name, Kind kind = Kind::automatic)
      : name_(std::move(name)), kind_(kind) {}

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }

 private:
  friend class Hook;

  std::string name_;
  Kind kind_;
  bool is_checked_ = false;  // the name is one
  uint64_t joined_key_ = 0;  // SavePlan::key() when it was in the collection of its kind
  uint64_t key_ = 0;         // SavePlan::key() of what follows; 0: nothing was found out yet
  Action wanted_{};
  Action observed_{};               // nothing, unless the hook looks at every step
  std::optional<uint32_t> number_;  // of the name, in the flight recorder that the hook feeds
};

}  // namespace smd
