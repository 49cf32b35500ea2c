#include "smd/base/host_name.h"

#include <unistd.h>

#include <array>

namespace smd {

std::string host_name() {
  constexpr size_t kMostBytes = 256;
  std::array<char, kMostBytes> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace smd
