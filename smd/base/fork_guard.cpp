#include "smd/base/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace smd {
namespace {
size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
}  // namespace

ForkGuard::ForkGuard() {
  void* page =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || ::madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) std::abort();
  *static_cast<char*>(page) = 1;
  mark_ = static_cast<const char*>(page);
}

ForkGuard::~ForkGuard() { ::munmap(const_cast<char*>(mark_), page_bytes()); }

}  // namespace smd
