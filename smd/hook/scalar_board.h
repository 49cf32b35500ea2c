#pragma once

// The scalars of the current step: each name once, with its last value. Names are remembered for
// the life of the hook, so that a known scalar costs one hash lookup and no memory. One thread at a
// time.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/reduce/reduce.h"

namespace smd {

class ScalarBoard final {
 public:
  struct Scalar {
    std::string name;  // with the prefix "scalar/"
    Number value;
    double wall_secs = 0;
    bool is_metric = false;  // of the job, for the platform that runs it
  };

  // True if the name was never seen before. `name` is without the prefix.
  struct Meaning {
    double wall_secs = 0;
    bool is_metric = false;
  };
  bool set(std::string_view name, const Number& value, const Meaning& meaning);
  bool knows(std::string_view name) const { return index_.find(name) != index_.end(); }
  bool empty() const { return current_.empty(); }

  // Calls f(const Scalar&) for each scalar set since the last call, in the order of first setting.
  template <typename F>
  void drain(F&& f) {
    for (uint32_t index : current_) {
      pending_[index] = 0;
      f(scalars_[index]);
    }
    current_.clear();
  }

  // The most recently added name, with its prefix.
  const std::string& last_added() const { return scalars_.back().name; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> index_;
  std::vector<Scalar> scalars_;
  std::vector<uint8_t> pending_;  // one flag per scalar: is it in current_?
  std::vector<uint32_t> current_;
};

}  // namespace smd
