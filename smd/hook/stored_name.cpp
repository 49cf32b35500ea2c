#include "smd/hook/stored_name.h"

#include <array>
#include <string>

namespace smd {

std::string_view stored_name(Reduction reduction) {
  static const auto names = [] {
    std::array<std::string, 32> table;
    all_reductions().for_each([&](Reduction r) { table[r.id()] = r.name(); });
    return table;
  }();
  return names[reduction.id()];
}

}  // namespace smd
