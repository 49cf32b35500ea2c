#include "smd/base/host_name.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace smd {
namespace {

TEST(HostName, is_what_the_kernel_calls_this_machine) {
  utsname about{};
  ASSERT_EQ(::uname(&about), 0);
  EXPECT_EQ(host_name(), about.nodename);
}

}  // namespace
}  // namespace smd
