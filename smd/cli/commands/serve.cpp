#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <random>

#include "smd/base/heap.h"
#include "smd/cli/command.h"
#include "smd/cli/interruption.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/server/server.h"

namespace smd::cli::command_list {
namespace {

constexpr uint16_t kPort = 8420;
constexpr std::string_view kRandom = "random";
constexpr rlim_t kFiles = 4096;
constexpr int kNice = 5;

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// Hundreds of listeners are hundreds of files.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kFiles) return;
  limit.rlim_cur = std::min(kFiles, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool open_browser(const std::string& address) {
  std::string program = "xdg-open";
  std::string argument = address;
  char* const words[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  return ::posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) == 0;
}

class Serve final : public Invocation {
 public:
  explicit Serve(CLI::App& options) {
    options.add_option("RUN", locations_, "runs, folders that hold runs, or URIs of runs")
        ->required()
        ->type_name("");
    options
        .add_option("--port", port_,
                    fmt::format("the port; 0 takes any that is free; {}, or any that is free if "
                                "somebody has it",
                                kPort))
        ->type_name("PORT")
        ->check(CLI::Range(0, 65535));
    options.add_option("--host", host_, "the address to serve at; 127.0.0.1")->type_name("ADDRESS");
    options
        .add_option("--token", token_,
                    "what others must know to be answered; 'random' makes one up")
        ->type_name("TOKEN");
    options.add_flag("--open", open_, "also open the page in a browser");
  }

  Result<ExitCode> run(const Context& context) override {
    if (token_ == kRandom) token_ = random_token();
    for (std::string& location : locations_) location = expanded(location);
    raise_file_limit();
    // Training on the same machine goes first.
    [[maybe_unused]] const int nice = ::nice(kNice);
    const Interruption interruption;
    SMD_TRY(const auto server, start(context));
    const std::string address = server->address();
    if (context.json) {
      write_json(context.terminal.out, {{"address", address},
                                        {"port", server->port()},
                                        {"pid", ::getpid()},
                                        {"runs", server->run_count()}});
    } else {
      context.terminal.out << printable(fmt::format("Serving {} at {} until Ctrl-C.",
                                                    counted(server->run_count(), "run"), address))
                           << '\n'
                           << std::flush;
    }
    // Each place that was named, so that a typo is seen although other runs are served.
    for (const std::string& location : locations_) {
      if (const std::string note = waiting_note(location); !note.empty()) {
        context.terminal.say(note);
      }
    }
    if (open_ && !open_browser(address)) {
      context.terminal.say("There is no program that opens pages.");
    }
    for (int look = 1; !interruption.has_come(); ++look) {
      ::poll(nullptr, 0, kLookMillis);
      if (look % kLooksPerTrim == 0) trim_heap();
    }
    return ExitCode::well;
  }

 private:
  static constexpr int kLookMillis = 500;
  // Each worker, run and judge has an arena, and answers about long runs take some MiB to make.
  static constexpr int kLooksPerTrim = 20;

  Result<std::unique_ptr<server::Server>> start(const Context& context) const {
    server::ServerOptions options{.locations = locations_,
                                  .host = host_,
                                  .port = port_ ? static_cast<uint16_t>(*port_) : kPort,
                                  .token = token_,
                                  .version = std::string(program_version()),
                                  .clock = context.clock};
    if (token_.empty() && !server::is_loopback(host_)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The address '{}' can be reached by others, so a token is needed: "
                               "--token TOKEN, or --token random.",
                               host_)};
    }
    auto started = server::Server::start(options);
    // Two people on one machine need not know of each other.
    if (!started.ok() && started.error().code == ErrorCode::io && !port_) {
      options.port = 0;
      return server::Server::start(std::move(options));
    }
    return started;
  }

  std::vector<std::string> locations_;
  std::optional<int> port_;
  std::string host_ = "127.0.0.1";
  std::string token_;
  bool open_ = false;
};

constexpr Example kExamples[] = {
    {"serve runs/first", "the page of one run, live"},
    {"serve runs --open", "all runs below a folder, also those that come later"},
    {"serve s3://bucket/runs/first runs/second", "a run in a bucket beside a local one"},
    {"serve runs --host 0.0.0.0 --token random", "for others, who get an address with a token"},
};

}  // namespace

extern const Command serve;
const Command serve = {
    .name = "serve",
    .summary = "Shows runs on a page: the whole model, live",
    .details =
        "Serves a page and the interface behind it, which docs/reference/http.md describes, until "
        "Ctrl-C. Runs and folders need not be there yet; folders are looked through three levels "
        "deep, every two seconds. Nothing is written, nothing is asked of other machines, and only "
        "this machine is answered unless --host says otherwise, which needs a token.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Serve>(options);
    },
};

}  // namespace smd::cli::command_list
