// Trains a small network with libtorch on points of two rings, evaluates it now and then, and
// records both.
// Usage: libtorch [directory]

#include <smdebug/libtorch.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

namespace {

namespace F = torch::nn::functional;
using smdebug::torch_adapter::ModuleHook;

struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(2, 16));
    fc2 = register_module("fc2", torch::nn::Linear(16, 2));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::tanh(SMDEBUG_CALL(hook, fc1, x));
    return SMDEBUG_CALL(hook, fc2, x);
  }

  torch::nn::Linear fc1 = nullptr, fc2 = nullptr;
  ModuleHook* hook = nullptr;  // the network also runs without one
};

struct Points {
  torch::Tensor x, ring;
};

Points two_rings(int64_t count) {
  const auto ring = torch::arange(count).remainder(2);
  const auto turn = 6.2831853 * torch::rand({count});
  const auto radius = 0.5 + ring + 0.1 * torch::randn({count});
  return {torch::stack({radius * torch::cos(turn), radius * torch::sin(turn)}, 1), ring};
}

constexpr char kConfig[] = R"({"HookParameters": {"save_all": true, "save_interval": 10}})";

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "run";
  const auto hook = smdebug::torch_adapter::create_hook(directory, kConfig);
  if (!hook.ok()) return std::fprintf(stderr, "%s\n", hook.error().message.c_str()), 1;

  torch::manual_seed(1);
  const Points points = two_rings(256), others = two_rings(64);
  auto net = std::make_shared<Net>();
  torch::optim::SGD optimizer(net->parameters(), 0.5);
  ModuleHook mh(**hook, *net, "Net");
  net->hook = &mh;
  double last = 0;
  for (int i = 0; i < 60; ++i) {
    net->train();
    {
      auto step = mh.begin_step();
      const auto y = mh.call(net, points.x);
      const auto loss = mh.loss("CrossEntropyLoss", F::cross_entropy(y, points.ring));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      last = loss.item<double>();
    }
    if (i % 20 != 19) continue;
    net->eval();
    const torch::NoGradGuard no_grad;
    auto step = mh.begin_step();
    mh.loss("CrossEntropyLoss", F::cross_entropy(mh.call(net, others.x), others.ring));
  }

  if (const smd::Status closed = (*hook)->close(); !closed.ok()) {
    std::fprintf(stderr, "%s\n", closed.error().message.c_str());
    return 1;
  }
  std::printf("The loss is %.4f; the run is in %s\n", last, directory.c_str());
  return 0;
}
