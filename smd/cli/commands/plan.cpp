#include <CLI/CLI.hpp>

#include "smd/cli/command.h"
#include "smd/cli/recording_options.h"

namespace smd::cli::command_list {
namespace {

class Plan final : public Invocation {
 public:
  explicit Plan(CLI::App& options) : recording_(options) {
    options.add_option("--steps", steps_, "how many steps the script runs; 3 by default")
        ->type_name("N")
        ->check(at_least_one);
  }

  // The rest is done by python/smdebug/plan.py.
  Result<ExitCode> run(const Context& context) override {
    SMD_RETURN_IF_ERROR(recording_.check());
    return context.hand_over();
  }

 private:
  int64_t steps_ = 3;
  RecordingOptions recording_;
};

constexpr Example kExamples[] = {
    {"plan train.py", "of what 'smdebug run train.py' would record"},
    {"plan --config job.json --json train.py", "as a document"},
};

}  // namespace

extern const Command plan;
const Command plan = {
    .name = "plan",
    .summary = "Tells what 'smdebug run' would record: tensors, steps, bytes, overhead",
    .details =
        "Runs the first steps of the script without writing anything and then ends it. Shows the "
        "collections and their tensors, at which steps they would be saved, how many bytes that "
        "is, how much slower training would be, and which patterns match nothing, with the names "
        "that come near. Needs Python.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Plan>(options);
    },
    .runs_program = true,
};

}  // namespace smd::cli::command_list
