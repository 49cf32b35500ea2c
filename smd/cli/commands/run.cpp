#include <CLI/CLI.hpp>

#include "smd/cli/command.h"
#include "smd/cli/recording_options.h"

namespace smd::cli::command_list {
namespace {

class Run final : public Invocation {
 public:
  explicit Run(CLI::App& options) : recording_(options) {}

  // The rest is done by python/smdebug/run.py.
  Result<ExitCode> run(const Context& context) override {
    SMD_RETURN_IF_ERROR(recording_.check());
    return context.hand_over();
  }

 private:
  RecordingOptions recording_;
};

constexpr Example kExamples[] = {
    {"run train.py", "statistics of everything, at most 1 % slower"},
    {"run --save weights,gradients:10 --out runs/a python train.py", "a choice of one's own"},
    {"run --config job.json torchrun train.py", "all processes of a launcher"},
};

}  // namespace

extern const Command run;
const Command run = {
    .name = "run",
    .summary = "Runs a training script and records it, without a change of the script",
    .details =
        "Models, losses and gradients are found while the script runs, also in "
        "processes that it starts. Without a configuration, the loss is recorded at every step "
        "and ten statistics of all weights, gradients and module outputs at as many steps as 1 % "
        "of the time allows. What the script prints and its exit code are as without recording; "
        "signals reach it. The word python may be left out before a .py file and before -m. A "
        "script that makes a hook of its own is left to it. Needs Python.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Run>(options);
    },
    .runs_program = true,
};

}  // namespace smd::cli::command_list
