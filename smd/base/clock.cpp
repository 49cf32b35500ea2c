#include "smd/base/clock.h"

namespace smd {
namespace {

class SystemClock final : public Clock {
 public:
  double unix_secs() const override {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace

std::shared_ptr<const Clock> system_clock() { return std::make_shared<SystemClock>(); }

}  // namespace smd
