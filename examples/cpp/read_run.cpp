// Prints the tensors of a run and one of them over time.
// Usage: read_run RUN TENSOR [REDUCTION]

#include <smd/smd.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) return std::puts("Usage: read_run RUN TENSOR [REDUCTION]"), 2;
  const auto trial = smd::Trial::open(argv[1]);
  if (!trial.ok()) return std::puts(trial.error().message.c_str()), 1;

  const auto now = (*trial)->snapshot();
  for (const uint32_t id : now->tensors(smd::Mode::global)) {
    const auto& name = now->names().tensors[id];
    std::printf("%s: %zu steps\n", name.c_str(),
                now->steps_of(id, smd::Mode::global, false).size());
  }

  const auto series = (*trial)->series(argv[2], {.reduction = argc > 3 ? argv[3] : ""});
  if (!series.ok()) return std::puts(series.error().message.c_str()), 1;
  for (size_t i = 0; i < series->steps.size(); ++i) {
    std::printf("%lld %g\n", static_cast<long long>(series->steps[i]), series->values[i]);
  }
  return 0;
}
