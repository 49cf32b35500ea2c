// Trains boosted trees with the C API of XGBoost and records them.
// Usage: xgboost_c_api LIBRARY [directory]
// LIBRARY is libxgboost.so, such as the one in the folder xgboost/lib of the Python package.

#include <smdebug/xgboost.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kRows = 40, kColumns = 4, kRounds = 4;
constexpr char kConfig[] = R"({"HookParameters": {"save_all": true, "save_interval": 2}})";
const std::map<std::string, std::string> kParameters = {
    {"objective", "binary:logistic"}, {"max_depth", "2"}, {"eta", "0.3"}, {"nthread", "1"}};

// Numbers between 0 and 1 that look as if they had no order.
float noise(int i) { return std::fmod(0.618034f * static_cast<float>(i + 1), 1.0f); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("Usage: xgboost_c_api LIBRARY [directory]\n", stderr), 2;
  const std::string directory = argc > 2 ? argv[2] : "run";
  const auto xgboost = smdebug::xgb::Library::open(argv[1]);
  if (!xgboost.ok()) return std::fprintf(stderr, "%s\n", xgboost.error().message.c_str()), 1;
  const auto hook = smdebug::xgb::create_hook(directory, kConfig);
  if (!hook.ok()) return std::fprintf(stderr, "%s\n", hook.error().message.c_str()), 1;

  std::vector<float> x(kRows * kColumns), y(kRows);
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = noise(i);
  for (int i = 0; i < kRows; ++i) y[i] = x[i * kColumns] > 0.5f ? 1.0f : 0.0f;
  smdebug::xgb::Handle train = nullptr, validation = nullptr, booster = nullptr;
  bool ok = xgboost->matrix_from_mat(x.data(), kRows, kColumns, NAN, &train) == 0 &&
            xgboost->set_float_info(train, "label", y.data(), kRows) == 0 &&
            xgboost->matrix_from_mat(x.data(), 10, kColumns, NAN, &validation) == 0 &&
            xgboost->set_float_info(validation, "label", y.data(), 10) == 0 &&
            xgboost->create(&train, 1, &booster) == 0;
  for (const auto& [name, value] : kParameters) {
    ok = ok && xgboost->set_param(booster, name.c_str(), value.c_str()) == 0;
  }

  smdebug::xgb::TrainHook recorder(
      **hook, *xgboost,
      {.train_data = train, .validation_data = validation, .hyperparameters = kParameters});
  for (int i = 0; ok && i < kRounds; ++i) {
    ok = xgboost->update(booster, i, train) == 0;
    recorder.after_iteration(booster, i, {{train, "train"}, {validation, "validation"}});
  }
  if (!ok) std::fprintf(stderr, "%s\n", xgboost->error().c_str());

  const smd::Status closed = (*hook)->close();
  if (!closed.ok()) std::fprintf(stderr, "%s\n", closed.error().message.c_str());
  xgboost->free(booster);
  xgboost->free_matrix(validation);
  xgboost->free_matrix(train);
  if (ok) std::printf("%d rounds are recorded in %s\n", kRounds, directory.c_str());
  return ok && closed.ok() ? 0 : 1;
}
