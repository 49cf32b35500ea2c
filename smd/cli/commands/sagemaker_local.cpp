#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "smd/cli/command.h"
#include "smd/cli/selection.h"

namespace smd::cli::command_list {
namespace {

namespace fs = std::filesystem;

class SagemakerLocal final : public Invocation {
 public:
  explicit SagemakerLocal(CLI::App& options) {
    options.add_option("--root", root_, "the directory that stands for the root of the container")
        ->type_name("DIR");
    add_list(options, "--config", configs_, "JSON",
             "what the SDK asks for: a file, or JSON text; may be repeated");
    options.add_option("SCRIPT", script_, "the script to run")->required()->type_name("");
    options.add_option("ARGS", arguments_, "its arguments")->type_name("");
  }

  // What can be wrong with files is found here; the rest is done by
  // python/smdebug/sagemaker_local.py.
  Result<ExitCode> run(const Context& context) override {
    std::error_code error;
    if (!root_.empty() && fs::exists(root_, error) && !fs::is_directory(root_, error)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--root is not a directory: {}", root_)};
    }
    for (const std::string& config : configs_) {
      if (config.starts_with('{') || fs::is_regular_file(config, error)) continue;
      return Error{ErrorCode::not_found,
                   fmt::format("--config is neither a file nor JSON text that begins with '{{': {}",
                               config)};
    }
    if (!fs::is_regular_file(script_, error)) {
      return Error{ErrorCode::not_found, fmt::format("There is no script to run: {}", script_)};
    }
    return context.hand_over();
  }

 private:
  std::string root_;
  std::vector<std::string> configs_;
  std::string script_;
  std::vector<std::string> arguments_;
};

constexpr Example kExamples[] = {
    {"sagemaker-local train.py", "with the default configuration"},
    {"sagemaker-local --config job.json --root try train.py", "with what the SDK would send"},
};

}  // namespace

extern const Command sagemaker_local;
const Command sagemaker_local = {
    .name = "sagemaker-local",
    .summary = "Runs a script as a SageMaker training job would, without AWS",
    .details =
        "Below the directory --root, by default sagemaker-local, the script finds the files that a "
        "training container has, and the environment leads to them. A configuration is a request "
        "of the SDK, whole or in part: DebugHookConfig, TensorBoardOutputConfig, CheckpointConfig, "
        "HyperParameters, Environment. Hyperparameters become arguments of the script, before its "
        "own. Signals go to the script and its exit code comes back. A script that fails or is "
        "killed can be started again in the same directory and goes on from its checkpoint. Needs "
        "Python.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<SagemakerLocal>(options);
    },
    .runs_program = true,
};

}  // namespace smd::cli::command_list
