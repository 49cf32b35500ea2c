// Records the scenario until it is killed, signalled or done, like a training job that must not
// fail.
//
//   smd_fault_recorder DIR [--seed N] [--steps N] [--step-ms N] [--big-every N] [--durable]
//                          [--packed] [--report] [--handle-signals]
//
// Prints "ready" before the first step, and at the end the result of close(). With
// --report each step prints how many steps are saved so far. SIGUSR1 is counted by
// a handler without SA_RESTART; with --handle-signals, SIGTERM and SIGINT end the loop and close.

#include <unistd.h>

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "smd/hook/hook.h"
#include "tests/fault/scenario.h"

namespace {

using namespace smd;
using fault::Tensor;
using fault::Way;

std::atomic<int> stop{0};
std::atomic<int64_t> signals{0};

struct Arguments {
  std::string dir;
  fault::Run run;
  int64_t steps = 20'000;  // far more than a test waits for
  int64_t step_ms = 0;
  bool durable = false;
  bool packed = false;
  bool report = false;
  bool handle_signals = false;
};

bool parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    int64_t* number = name == "--seed"        ? &out.run.seed
                      : name == "--steps"     ? &out.steps
                      : name == "--step-ms"   ? &out.step_ms
                      : name == "--big-every" ? &out.run.big_every
                                              : nullptr;
    if (number != nullptr) {
      if (++i == argc) return false;
      const char* end = argv[i] + std::strlen(argv[i]);
      if (std::from_chars(argv[i], end, *number).ptr != end) return false;
    } else if (name == "--durable") {
      out.durable = true;
    } else if (name == "--packed") {
      out.packed = true;
    } else if (name == "--report") {
      out.report = true;
    } else if (name == "--handle-signals") {
      out.handle_signals = true;
    } else if (out.dir.empty() && !name.starts_with("--")) {
      out.dir = name;
    } else {
      return false;
    }
  }
  return !out.dir.empty();
}

void install_handlers(bool closing) {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);  // no SA_RESTART: interrupted calls fail with EINTR
  action.sa_handler = [](int) { ++signals; };
  sigaction(SIGUSR1, &action, nullptr);
  if (!closing) return;
  action.sa_handler = [](int) { stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

HookOptions hook_options(const Arguments& arguments) {
  HookOptions options;
  HookConfig& config = options.config;
  config.out_dir = arguments.dir;
  config.durable = arguments.durable ? Durability::step : Durability::off;
  config.layout = arguments.packed ? RunLayout::packed : RunLayout::original;
  config.save_config = *SaveConfig::broadcast({.save_interval = 1});
  config.include_regex = {"^(run|small/|big/)"};
  config.include_collections = {"reduced", "empty"};
  config.collections = {
      {.name = "reduced",
       .include_regex = {"^reduced/"},
       .reduction_config = *ReductionConfig::create({.reductions = {"min", "max", "sum", "mean"},
                                                     .abs_reductions = {"max"},
                                                     .save_shape = true})},
      {.name = "empty",
       .include_regex = {"^empty/"},
       .reduction_config = *ReductionConfig::create({.save_shape = true})}};
  return options;
}

// The elements with their axes swapped in memory, seen through strides.
Status save_strided(Hook& hook, const Tensor& tensor) {
  const int64_t rows = tensor.shape[0];
  const int64_t columns = tensor.shape[1];
  std::vector<float> memory(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const auto at = static_cast<size_t>(i % columns * rows + i / columns);
    memory[at] = load_le<float>(tensor.elements.data() + i * 4);
  }
  const int64_t strides[] = {4, 4 * rows};
  return hook.save(tensor.name,
                   {.data = memory.data(), .shape = tensor.shape, .strides_bytes = strides});
}

Status save(Hook& hook, const Tensor& tensor) {
  static const std::string kTexts[] = {"texts"};
  const TensorView view{
      .data = tensor.elements.data(), .dtype = tensor.dtype, .shape = tensor.shape};
  switch (tensor.way) {
    case Way::strided: return save_strided(hook, tensor);
    case Way::owned:
      return hook.save_owned(tensor.name, own(Bytes(tensor.elements), tensor.dtype, tensor.shape));
    case Way::scalar: {
      const auto value = load_le<double>(tensor.elements.data());
      return hook.save_scalar(std::string_view(tensor.name).substr(std::strlen("scalar/")), value);
    }
    case Way::strings: {
      const std::vector<std::string_view> strings(tensor.strings.begin(), tensor.strings.end());
      return hook.save_strings(tensor.name, strings, tensor.shape, kTexts);
    }
    default: return hook.save(tensor.name, view);
  }
}

// The training loop: goes on whatever the hook says. Returns the number of steps.
int64_t train(Hook& hook, const Arguments& arguments) {
  int64_t complaints = 0;
  auto note = [&](const Status& status) {
    if (!status.ok() && complaints++ == 0) fmt::print(stderr, "hook: {}\n", status.error().message);
  };
  Step step = 0;
  for (; step != arguments.steps && stop == 0; ++step) {
    hook.set_mode(fault::step_info(step).mode);
    note(hook.begin_step());
    for (const Tensor& tensor : fault::tensors_of(arguments.run, step)) note(save(hook, tensor));
    if (arguments.report) {
      fmt::print("{}\n", hook.committed_steps());
      std::fflush(stdout);
    }
    if (arguments.step_ms > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(arguments.step_ms));
  }
  return step;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    fmt::print(stderr,
               "usage: smd_fault_recorder DIR [--seed N] [--steps N] [--step-ms N] "
               "[--big-every N] [--durable] [--packed] [--report] [--handle-signals]\n");
    return 2;
  }
  // A recorder that nobody ends must not fill the disk for ever.
  constexpr unsigned kLongestRunSecs = 120;
  ::alarm(kLongestRunSecs);
  install_handlers(arguments.handle_signals);
  auto hook = Hook::create(hook_options(arguments));
  if (!hook.ok()) {
    fmt::print(stderr, "create: {}\n", hook.error().message);
    return 3;
  }
  fmt::print("ready\n");
  std::fflush(stdout);
  const int64_t steps = train(**hook, arguments);
  const Status closed = (*hook)->close();
  fmt::print("steps={} signals={} close={}\n", steps, signals.load(),
             closed.ok() ? "ok" : closed.error().message);
  return 0;
}
