#include "smd/trial/names.h"

namespace smd {

uint32_t NameList::add(std::string_view name) {
  if (const auto it = ids_.find(name); it != ids_.end()) return it->second;
  const uint32_t id = size();
  names_.emplace_back(name);
  ids_.emplace(name, id);
  return id;
}

std::optional<uint32_t> NameList::find(std::string_view name) const {
  const auto it = ids_.find(name);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

}  // namespace smd
