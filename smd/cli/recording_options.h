#pragma once

// What is recorded of a program that does not know of it: the options that `smdebug run` and
// `smdebug plan` share. One thread at a time.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "smd/base/result.h"

namespace smd::cli {

class RecordingOptions final {
 public:
  // Adds the options and the program's words to `app`, which writes to this object.
  explicit RecordingOptions(CLI::App& app);

  // What can be told without Python: options that exclude each other, files that are not there,
  // reductions and collections that do not exist.
  Status check() const;

 private:
  std::string config_;
  std::string out_;
  std::string save_;
  std::vector<std::string> include_;
  std::string reductions_;
  bool raw_ = false;
  int64_t interval_ = 0;
  std::string workers_;
  std::string layout_;
  std::string program_;
  std::vector<std::string> arguments_;
};

// For options that take a whole number of at least 1: what is wrong with the text, or "".
std::string at_least_one(const std::string& text);

}  // namespace smd::cli
