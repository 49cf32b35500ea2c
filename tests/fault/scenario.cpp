#include "tests/fault/scenario.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace smd::fault {
namespace {

constexpr int64_t kBigElements = 300'000;
constexpr size_t kReducedElements = 64;  // a power of two, so that the mean is exact

// SplitMix64.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The numbers of one tensor at one step.
class Numbers final {
 public:
  Numbers(const Run& run, Step step, std::string_view name)
      : state_(mixed(static_cast<uint64_t>(run.seed) * 1'000'003 + static_cast<uint64_t>(step))) {
    for (char c : name) state_ = mixed(state_ ^ static_cast<uint8_t>(c));
  }
  // -1000 … 1000, whole.
  int64_t next() { return static_cast<int64_t>(mixed(state_++) % 2001) - 1000; }

 private:
  uint64_t state_;
};

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
Bytes filled(int64_t count, Numbers numbers) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(numbers.next());
  return bytes_of(values);
}

// bfloat16 holds -128 … 128 exactly: the upper half of the float.
Bytes filled_bfloat16(int64_t count, Numbers numbers) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) {
    const auto number = static_cast<float>(numbers.next() % 129);
    value = static_cast<uint16_t>(load_le<uint32_t>(reinterpret_cast<const std::byte*>(&number)) >> 16);
  }
  return bytes_of(values);
}

Expected reduction(const Tensor& tensor, std::string_view name, double value) {
  return {.name = "smdebug/reductions/" + std::string(name) + "/" + tensor.name,
          .dtype = DType::float64,
          .shape = {1},
          .elements = bytes_of(std::vector<double>{value})};
}

std::vector<Expected> reductions_of(const Tensor& tensor) {
  std::vector<double> x(tensor.elements.size() / sizeof(double));
  std::memcpy(x.data(), tensor.elements.data(), tensor.elements.size());
  double sum = 0;
  double largest = 0;
  for (double v : x) {
    sum += v;
    largest = std::max(largest, std::abs(v));
  }
  return {reduction(tensor, "min", *std::min_element(x.begin(), x.end())),
          reduction(tensor, "max", *std::max_element(x.begin(), x.end())),
          reduction(tensor, "sum", sum),
          reduction(tensor, "mean", sum / static_cast<double>(x.size())),
          reduction(tensor, "abs_max", largest)};
}

}  // namespace

StepInfo step_info(Step step) {
  const Step evals_before = step / 5;
  if (step % 5 == 4) return {.step = step, .mode = Mode::eval, .mode_step = evals_before};
  return {.step = step, .mode = Mode::train, .mode_step = step - evals_before};
}

std::vector<Tensor> tensors_of(const Run& run, Step step) {
  auto numbers = [&](std::string_view name) { return Numbers(run, step, name); };
  const int64_t extra = run.seed % 7;
  std::vector<Tensor> all;
  std::vector<int64_t> identity(static_cast<size_t>(2 + extra), 0);
  identity[0] = run.seed;
  identity[1] = run.big_every;
  all.push_back({.name = std::string(kRunTensor),
                 .dtype = DType::int64,
                 .shape = {2 + extra},
                 .elements = bytes_of(identity)});
  all.push_back({.name = "small/w", .shape = {3, 4 + extra},
                 .elements = filled<float>(3 * (4 + extra), numbers("w"))});
  all.push_back({.name = "small/ids", .dtype = DType::int16, .shape = {7},
                 .elements = filled<int16_t>(7, numbers("ids"))});
  all.push_back({.name = "small/half", .dtype = DType::bfloat16, .shape = {5},
                 .elements = filled_bfloat16(5, numbers("half"))});
  all.push_back({.name = "small/strided", .way = Way::strided, .shape = {6, 40},
                 .elements = filled<float>(240, numbers("strided"))});
  all.push_back({.name = "reduced/r", .way = Way::reduced, .dtype = DType::float64,
                 .shape = {int64_t{kReducedElements}},
                 .elements = filled<double>(kReducedElements, numbers("r"))});
  all.push_back({.name = "empty/e", .way = Way::shape_only, .shape = {0, 3 + extra}});
  all.push_back({.name = "texts/t", .way = Way::strings, .dtype = DType::string, .shape = {2},
                 .strings = {"step " + std::to_string(step), "é" + std::string(step % 11, 'x')}});
  all.push_back({.name = "scalar/loss", .way = Way::scalar, .dtype = DType::float64, .shape = {1},
                 .elements = filled<double>(1, numbers("loss"))});
  if (run.big_every > 0 && step % run.big_every == 0) {
    const int64_t count = kBigElements + run.seed % 100;
    all.push_back({.name = "big/copied", .shape = {count},
                   .elements = filled<float>(count, numbers("copied"))});
    all.push_back({.name = "big/owned", .way = Way::owned, .shape = {2, count / 2},
                   .elements = filled<float>(count / 2 * 2, numbers("owned"))});
  }
  std::rotate(all.begin(), all.begin() + run.seed % static_cast<int64_t>(all.size()), all.end());
  return all;
}

std::vector<Expected> expected_of(const Tensor& tensor) {
  if (tensor.way == Way::shape_only) return {};
  if (tensor.way == Way::reduced) return reductions_of(tensor);
  return {{tensor.name, tensor.dtype, tensor.shape, tensor.elements, tensor.strings}};
}

Run run_of(ByteSpan elements) {
  return {.seed = load_le<int64_t>(elements.data()), .big_every = load_le<int64_t>(elements.data() + 8)};
}

}  // namespace smd::fault
