#include "smd/cli/completion.h"

#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"

namespace smd::cli::command_list {
namespace {

class Completion final : public Invocation {
 public:
  explicit Completion(CLI::App& options) {
    add_choice(options, "SHELL", shell_, completion_shells(), "the shell to teach")->required();
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const std::string script, completion_script(shell_));
    if (context.json) {
      write_json(context.terminal.out, {{"shell", shell_}, {"script", script}});
    } else {
      context.terminal.out << script;
    }
    return ExitCode::well;
  }

 private:
  std::string shell_;
};

constexpr Example kExamples[] = {
    {"completion bash > ~/.local/share/bash-completion/completions/smdebug", "for every new bash"},
    {"completion fish > ~/.config/fish/completions/smdebug.fish", "for every new fish"},
    {"completion zsh > ~/.zfunc/_smdebug", "for zsh, with ~/.zfunc in $fpath"},
};

}  // namespace

extern const Command completion;
const Command completion = {
    .name = "completion",
    .summary = "Prints a script that teaches a shell to complete commands and options",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Completion>(options);
    },
};

}  // namespace smd::cli::command_list
