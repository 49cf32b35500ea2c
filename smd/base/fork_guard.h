#pragma once

// Tells the process that made it from its forked children, at the cost of one memory read.
// Needed because threads do not survive fork(): an object with a thread must stand still in a
// child. Immutable, thread-safe.

namespace smd {

class ForkGuard final {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  // False in every forked child.
  bool in_owner() const { return *mark_ != 0; }

 private:
  const volatile char* mark_;  // on a page that the kernel wipes in children
};

}  // namespace smd
