#include <smd/smd.h>

#include <cstdio>
#include <vector>

int main() {
  const auto hook =
      smd::create_hook("run", R"({"HookParameters": {"save_all": true, "save_interval": 2}})");
  if (!hook.ok()) return std::puts(hook.error().message.c_str()), 1;
  std::vector<float> weight(12, 1.0f);
  for (int i = 0; i < 10; ++i) {
    smd::StepScope step(**hook);
    for (float& w : weight) w *= 0.9f;
    step.save("weight", smd::view(weight, {3, 4}));
    step.save_scalar("loss", weight[0]);
  }
  return (*hook)->close().ok() ? 0 : 1;
}
