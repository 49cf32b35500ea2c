#pragma once

// Runs the program inside of a test, with a folder of its own and streams that are kept.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "smd/base/json.h"
#include "smd/cli/program.h"

namespace smd::cli {

class ProgramTestCase : public testing::Test {
 protected:
  ProgramTestCase() { std::filesystem::create_directories(folder); }
  ~ProgramTestCase() override { std::filesystem::remove_all(folder); }

  // The exit code; what was printed is in `out` and `err`.
  int run(std::initializer_list<std::string> arguments) {
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    Terminal terminal{.out = out_stream,
                      .err = err_stream,
                      .out_is_terminal = is_terminal,
                      .err_is_terminal = is_terminal,
                      .width = width};
    const ProgramOptions options{.clock = clock,
                                 .hand_over = [this](std::span<const std::string> words) {
                                   handed_over.assign(words.begin(), words.end());
                                   return Result<ExitCode>(ExitCode::well);
                                 }};
    const std::vector<std::string> words(arguments);
    const ExitCode code = run_program(words, terminal, options);
    out = out_stream.str();
    err = err_stream.str();
    return static_cast<int>(code);
  }
  Json json() const {
    const auto document = parse_json(out, "");
    EXPECT_TRUE(document.ok()) << out;
    return document.ok() ? *document : Json();
  }

  const std::string folder = testing::TempDir() + "/smd_program_" + std::to_string(getpid()) + "_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
  bool is_terminal = false;
  int width = 80;
  std::shared_ptr<const Clock> clock = system_clock();
  std::string out;
  std::string err;
  std::vector<std::string> handed_over;
};

}  // namespace smd::cli
