#include "smd/cli/python_handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace smd::cli {
namespace {

namespace fs = std::filesystem;

TEST(PythonHandover, the_interpreter_beside_the_program_comes_first) {
  const fs::path folder = testing::TempDir() + "/smd_handover_" + std::to_string(getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  EXPECT_EQ(python_interpreter((folder / "smdebug").string()), "python3");
  std::ofstream(folder / "python3") << "#!/bin/sh\n";
  EXPECT_EQ(python_interpreter((folder / "smdebug").string()), "python3");  // not executable
  fs::permissions(folder / "python3", fs::perms::owner_all);
  EXPECT_EQ(python_interpreter((folder / "smdebug").string()), (folder / "python3").string());
  EXPECT_EQ(python_interpreter(""), "python3");
  fs::remove_all(folder);
}

TEST(PythonHandover, arguments_follow_the_module) {
  const std::string arguments[] = {"environment", "--json"};
  EXPECT_THAT(python_command_line("python3", arguments),
              testing::ElementsAre("python3", "-m", "smdebug.cli", "environment", "--json"));
}

}  // namespace
}  // namespace smd::cli
