#include "smd/hook/scalar_board.h"

#include "smd/types/tensor_name.h"

namespace smd {

bool ScalarBoard::set(std::string_view name, const Number& value, const Meaning& meaning) {
  auto it = index_.find(name);
  const bool added = it == index_.end();
  if (added) {
    it = index_.emplace(name, static_cast<uint32_t>(scalars_.size())).first;
    scalars_.push_back({.name = std::string(kScalarPrefix).append(name)});
    pending_.push_back(0);
  }
  Scalar& scalar = scalars_[it->second];
  scalar.value = value;
  scalar.wall_secs = meaning.wall_secs;
  scalar.is_metric = meaning.is_metric;
  if (pending_[it->second] == 0) {
    pending_[it->second] = 1;
    current_.push_back(it->second);
  }
  return added;
}

}  // namespace smd
