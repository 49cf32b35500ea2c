#include "smd/cli/python_handover.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace smd::cli {

std::string python_interpreter(const std::string& program) {
  const auto beside = std::filesystem::path(program).parent_path() / "python3";
  if (!program.empty() && ::access(beside.c_str(), X_OK) == 0) return beside.string();
  return "python3";
}

std::vector<std::string> python_command_line(std::string interpreter,
                                             std::span<const std::string> arguments) {
  std::vector<std::string> line = {std::move(interpreter), "-m", "smdebug.cli"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

Error hand_over_to_python(std::span<const std::string> arguments) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  auto line = python_command_line(python_interpreter(program), arguments);
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  return {ErrorCode::not_found,
          fmt::format("This command is written in Python, but '{}' cannot be started: {}.", line[0],
                      std::strerror(errno))};
}

}  // namespace smd::cli
