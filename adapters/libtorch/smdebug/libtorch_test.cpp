#include "smdebug/libtorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace smdebug::torch_adapter {
namespace {

using smd::Mode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using torch::Tensor;

class Lines final : public smd::Log {
 public:
  void write(smd::LogLevel level, std::string_view message) override {
    if (level != smd::LogLevel::info) lines.emplace_back(message);  // such as the bill
  }
  std::vector<std::string> lines;
};

struct BlockImpl : torch::nn::Module {
  BlockImpl() { inner = register_module("inner", torch::nn::Linear(4, 4)); }
  Tensor forward(const Tensor& x) { return SMDEBUG_CALL(hook, inner, x); }
  torch::nn::Linear inner = nullptr;
  ModuleHook* hook = nullptr;
};
TORCH_MODULE(Block);

// The parts that names are made of: a leaf, an in-place module, a nested one, a recurrent one, and
// one that is never called.
struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(3, 4));
    relu = register_module("relu", torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)));
    block = register_module("block", Block());
    lstm = register_module("lstm", torch::nn::LSTM(4, 2));
    fc2 = register_module("fc2", torch::nn::Linear(2, 2));
    unused = register_module("unused", torch::nn::Linear(2, 2));
  }
  void use(ModuleHook* wanted) { hook = block->hook = wanted; }
  Tensor forward(Tensor x) {
    x = SMDEBUG_CALL(hook, relu, SMDEBUG_CALL(hook, fc1, x));
    x = SMDEBUG_CALL(hook, this->block, x);
    x = SMDEBUG_CALL(hook, relu, x);
    const auto [y, state] = SMDEBUG_CALL(hook, lstm, x.unsqueeze(0));
    return SMDEBUG_CALL(hook, fc2, y.squeeze(0));
  }
  torch::nn::Linear fc1 = nullptr, fc2 = nullptr, unused = nullptr;
  torch::nn::ReLU relu = nullptr;
  torch::nn::LSTM lstm = nullptr;
  Block block = nullptr;
  ModuleHook* hook = nullptr;
};

class LibtorchTest : public testing::Test {
 protected:
  smd::HookOptions options() const {
    smd::HookOptions o = hook_options();
    o.log = log;
    o.environment = smd::Environment();
    o.storage = storage;
    return o;
  }
  std::unique_ptr<smd::Hook> make(smd::HookOptions o) const {
    auto hook = smd::Hook::create(std::move(o));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  std::unique_ptr<smd::Hook> saving_every(int64_t interval) const {
    smd::HookOptions o = options();
    o.config.save_all = true;
    o.config.save_config = *smd::SaveConfig::broadcast({.save_interval = interval});
    return make(std::move(o));
  }

  std::unique_ptr<smd::Trial> trial() const {
    auto opened = smd::Trial::open(storage, {.end_delay_secs = 0});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_TRUE((*opened)->refresh().ok());
    return std::move(*opened);
  }
  std::set<std::string> names() const {
    const auto now = trial()->snapshot();
    std::set<std::string> found;
    for (const uint32_t id : now->tensors(Mode::global)) found.insert(now->names().tensors[id]);
    return found;
  }
  std::vector<smd::Step> steps_of(const std::string& name, Mode mode = Mode::global) const {
    const auto now = trial()->snapshot();
    const auto id = now->names().tensors.find(name);
    if (!id) return {};
    const auto steps = now->steps_of(*id, mode, true);
    return {steps.begin(), steps.end()};
  }
  smd::TensorValue value(const std::string& name, smd::Step step = 0) const {
    auto read = trial()->value(name, {.step = step});
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read.ok() ? *read : smd::TensorValue();
  }
  // Bit for bit, and of the same type and shape.
  void expect_saved(const std::string& name, const Tensor& expected, smd::Step step = 0) const {
    const smd::TensorValue found = value(name, step);
    EXPECT_EQ(found.dtype, dtype_of(expected.scalar_type())) << name;
    EXPECT_EQ(found.shape, expected.sizes().vec()) << name;
    const Tensor plain = expected.detach().resolve_conj().resolve_neg().contiguous();
    ASSERT_EQ(found.elements.size(), plain.nbytes()) << name;
    if (plain.nbytes() == 0) return;
    EXPECT_EQ(std::memcmp(found.elements.data(), plain.const_data_ptr(), plain.nbytes()), 0)
        << name;
  }

  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  std::shared_ptr<smd::storage::Storage> storage = smd::storage::memory_storage();
};

TEST_F(LibtorchTest, names_are_those_of_the_python_package) {
  const auto hook = saving_every(2);
  const auto net = std::make_shared<Net>();
  ModuleHook mh(*hook, *net);
  net->use(&mh);
  torch::nn::CrossEntropyLoss loss;
  for (int i = 0; i < 3; ++i) {
    auto step = mh.begin_step();
    mh.loss(loss, mh.call(net, torch::randn({5, 3})), torch::zeros({5}, torch::kLong)).backward();
  }
  net->eval();
  for (int i = 0; i < 3; ++i) {
    const torch::NoGradGuard no_grad;
    auto step = mh.begin_step();
    mh.call(net, torch::randn({5, 3}));
  }
  ASSERT_TRUE(hook->close().ok());

  std::set<std::string> expected{"Net_input_0",
                                 "Net_output_0",
                                 "fc1_input_0",
                                 "fc1_output_0",
                                 "fc2_input_0",
                                 "fc2_output_0",
                                 "block_input_0",
                                 "block_output_0",
                                 "lstm_input_0",
                                 "lstm_output_0",
                                 "lstm_output_1",
                                 "lstm_output_2",
                                 "relu_input_0",
                                 "relu_input_1",
                                 "relu_output_0",
                                 "relu_output_1",
                                 "block.inner_input_0",
                                 "block.inner_output_0",
                                 "CrossEntropyLoss_input_0",
                                 "CrossEntropyLoss_input_1",
                                 "CrossEntropyLoss_output_0"};
  for (const char* path : {"fc1", "block.inner", "fc2"}) {
    for (const char* part : {"weight", "bias"}) {
      expected.insert(std::string("Net_") + path + "." + part);
      expected.insert(std::string("gradient/Net_") + path + "." + part);
    }
  }
  for (const char* part : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    expected.insert(std::string("Net_lstm.") + part);
    expected.insert(std::string("gradient/Net_lstm.") + part);
  }
  expected.insert({"Net_unused.weight", "Net_unused.bias"});
  EXPECT_EQ(names(), expected);
  EXPECT_THAT(steps_of("Net_fc1.weight"), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(steps_of("Net_fc1.weight", Mode::train), ElementsAre(0, 2));
  EXPECT_THAT(steps_of("Net_fc1.weight", Mode::eval), ElementsAre(0, 2));
  EXPECT_THAT(steps_of("gradient/Net_fc1.weight"), ElementsAre(0, 2));
  EXPECT_THAT(log->lines, IsEmpty());
}

TEST_F(LibtorchTest, values_are_those_of_the_moment) {
  const auto hook = saving_every(1);
  const auto net = std::make_shared<Net>();
  ModuleHook mh(*hook, *net);
  net->use(&mh);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  std::vector<Tensor> weights, gradients;
  for (int i = 0; i < 2; ++i) {
    weights.push_back(net->fc1->weight.detach().clone());
    auto step = mh.begin_step();
    optimizer.zero_grad();
    mh.call(net, torch::randn({5, 3})).sum().backward();
    gradients.push_back(net->fc1->weight.grad().clone());
    optimizer.step();
  }
  ASSERT_TRUE(hook->close().ok());
  for (int i = 0; i < 2; ++i) {
    expect_saved("Net_fc1.weight", weights[i], i);
    expect_saved("gradient/Net_fc1.weight", gradients[i], i);
  }
  // In place: the input shows what the module made of it; what was saved before does not.
  const auto given = value("relu_input_0"), made = value("relu_output_0");
  EXPECT_TRUE(std::ranges::equal(given.elements, made.elements));
  EXPECT_FALSE(std::ranges::equal(value("fc1_output_0").elements, made.elements));
}

TEST_F(LibtorchTest, a_gradient_is_what_this_backward_adds) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  EXPECT_EQ(mh.root_name(), "Linear");
  const Tensor x = torch::ones({1, 2});
  for (int i = 0; i < 2; ++i) {
    auto step = mh.begin_step();
    net(x).sum().backward();
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(torch::equal(net->weight.grad(), 2 * x));
  expect_saved("gradient/Linear_weight", x, 0);
  expect_saved("gradient/Linear_weight", x, 1);
}

TEST_F(LibtorchTest, callbacks_are_attached_on_saved_steps_alone) {
  const auto hook = saving_every(3);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  int own_calls = 0;
  net->weight.register_hook([&](const Tensor&) { ++own_calls; });
  const auto* meta = torch::autograd::impl::get_autograd_meta(net->weight);
  for (int i = 0; i < 30; ++i) {
    auto step = mh.begin_step();
    EXPECT_EQ(mh.attached_gradients(), i % 3 == 0 ? 2u : 0u);
    net(torch::ones({1, 2})).sum().backward();
    step.end();
    EXPECT_EQ(mh.attached_gradients(), 0u);
    EXPECT_EQ(meta->cpp_hooks_list_->size(), 1u);
  }
  EXPECT_EQ(own_calls, 30);
}

TEST_F(LibtorchTest, the_mode_follows_the_model) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  { auto step = mh.begin_step(); }
  net->eval();
  { auto step = mh.begin_step(); }
  net->train();
  {
    const torch::NoGradGuard no_grad;
    auto step = mh.begin_step();
  }
  { auto step = mh.begin_step(Mode::predict); }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps_of("Linear_weight", Mode::train), ElementsAre(0));
  EXPECT_THAT(steps_of("Linear_weight", Mode::eval), ElementsAre(0, 1));
  EXPECT_THAT(steps_of("Linear_weight", Mode::predict), ElementsAre(0));
}

TEST_F(LibtorchTest, a_view_is_the_tensors_own_memory) {
  const Tensor matrix = torch::arange(12.0f).view({3, 4});
  for (const Tensor& tensor : {matrix, matrix.t(), matrix.slice(1, 1, 3), matrix.select(0, 2),
                               torch::ones({1}).expand({2, 3})}) {
    const auto parts = plain_parts(tensor);
    ASSERT_TRUE(parts.ok());
    const auto host = HostTensor::of(parts->front().second);
    ASSERT_TRUE(host.ok());
    EXPECT_EQ(host->view().data, tensor.const_data_ptr());
    EXPECT_TRUE(smd::check(host->view()).ok());
  }
}

TEST_F(LibtorchTest, tensors_of_every_kind_come_back_bit_for_bit) {
  const Tensor x = torch::randn({4, 6});
  const std::vector<std::pair<std::string, Tensor>> tensors{
      {"transposed", x.t()},
      {"sliced", x.slice(1, 1, 6, 2)},
      {"expanded", x.select(1, 0).unsqueeze(1).expand({4, 3})},
      {"number", torch::tensor(3.5)},
      {"channels", torch::randn({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast)},
      {"many_axes", torch::randn({1, 2, 1, 2, 1, 2, 1, 2, 1, 2}).transpose(1, 9)},
      {"half", x.to(torch::kHalf)},
      {"bfloat16", x.to(torch::kBFloat16)},
      {"bfloat16_transposed", x.to(torch::kBFloat16).t()},
      {"float8", x.to(torch::kFloat8_e4m3fn)},
      {"double", x.to(torch::kDouble)},
      {"int", torch::arange(5)},
      {"byte", torch::arange(5, torch::kUInt8)},
      {"unsigned", torch::arange(5).to(torch::kUInt16)},
      {"bool", x > 0},
      {"complex", torch::complex(x, x + 1)},
      {"conjugate", torch::complex(x, x + 1).conj()},
      {"negative", torch::_neg_view(x)},
      {"leaf", torch::randn({2, 2}, torch::requires_grad())},
  };
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  {
    auto step = mh.begin_step();
    for (const auto& [name, tensor] : tensors) mh.save(name, tensor);
  }
  ASSERT_TRUE(hook->close().ok());
  for (const auto& [name, tensor] : tensors) expect_saved(name, tensor);
  EXPECT_TRUE(mh.status().ok()) << mh.status().error().message;
}

TEST_F(LibtorchTest, sparse_gradients_become_dense) {
  const auto hook = saving_every(1);
  torch::nn::Embedding net(torch::nn::EmbeddingOptions(5, 2).sparse(true));
  ModuleHook mh(*hook, *net);
  {
    auto step = mh.begin_step();
    net(torch::tensor({1, 3, 1})).sum().backward();
  }
  ASSERT_TRUE(hook->close().ok());
  expect_saved("gradient/Embedding_weight", net->weight.grad().to_dense());
}

TEST_F(LibtorchTest, shared_parameters_have_one_name) {
  struct Tied : torch::nn::Module {
    Tied() {
      a = register_module("a", torch::nn::Linear(2, 2));
      b = register_module("b", torch::nn::Linear(2, 2));
      b->weight = b->register_parameter("shared", a->weight);
    }
    torch::nn::Linear a = nullptr, b = nullptr;
  };
  const auto hook = saving_every(1);
  Tied net;
  ModuleHook mh(*hook, net, "Tied");
  { auto step = mh.begin_step(); }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(names().contains("Tied_a.weight"));
  EXPECT_FALSE(names().contains("Tied_b.shared"));
}

TEST_F(LibtorchTest, a_sequential_is_seen_element_by_element) {
  const auto hook = saving_every(1);
  torch::nn::Sequential root(torch::nn::Linear(2, 3), torch::nn::Tanh(), torch::nn::LSTM(3, 2));
  ModuleHook mh(*hook, *root);
  ObservedSequential observed(mh, root);
  using Lstm = std::tuple<Tensor, std::tuple<Tensor, Tensor>>;
  const Tensor x = torch::randn({1, 4, 2});
  const Tensor expected = std::get<0>(root->forward<Lstm>(x));
  {
    auto step = mh.begin_step();
    EXPECT_TRUE(torch::equal(std::get<0>(observed.forward<Lstm>(x)), expected));
  }
  ASSERT_TRUE(hook->close().ok());
  std::set<std::string> found = names();
  std::erase_if(found, [](const std::string& name) {
    return name.find("weight") != std::string::npos || name.find("bias") != std::string::npos;
  });
  EXPECT_THAT(found,
              ElementsAre("0_input_0", "0_output_0", "1_input_0", "1_output_0", "2_input_0",
                          "2_output_0", "2_output_1", "2_output_2", "Sequential_input_0",
                          "Sequential_output_0", "Sequential_output_1", "Sequential_output_2"));
  expect_saved("2_output_0", expected);
}

TEST_F(LibtorchTest, a_sequential_inside_a_model_carries_its_path) {
  struct Model : torch::nn::Module {
    Model() {
      features =
          register_module("features", torch::nn::Sequential({{"up", torch::nn::Linear(2, 3)}}));
    }
    torch::nn::Sequential features = nullptr;
  };
  const auto hook = saving_every(1);
  Model net;
  ModuleHook mh(*hook, net, "Model");
  ObservedSequential observed(mh, net.features);
  {
    auto step = mh.begin_step();
    observed(torch::ones({1, 2}));
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(names().contains("features.up_input_0"));
  EXPECT_TRUE(names().contains("features_output_0"));
}

TEST_F(LibtorchTest, wrong_use_gets_one_sentence_each) {
  struct Empty : torch::nn::Module {};
  const auto hook = saving_every(1);
  Empty net;
  ModuleHook mh(*hook, net, "Empty");
  ASSERT_EQ(log->lines.size(), 1u);
  EXPECT_THAT(log->lines[0], HasSubstr("'Empty' has no parameters"));
  torch::nn::Linear stranger(2, 1);
  for (int i = 0; i < 3; ++i) {
    auto step = mh.begin_step();
    const Tensor y = mh.call(stranger, torch::ones({1, 2}));
    EXPECT_EQ(y.numel(), 1);
    mh.call("", stranger, torch::ones({1, 2}));
    EXPECT_EQ(mh.loss("MSELoss", torch::ones({4, 2})).numel(), 8);
    mh.loss("", torch::ones({}));
    EXPECT_FALSE(mh.loss("NoLoss", Tensor()).defined());
  }
  ASSERT_EQ(log->lines.size(), 5u);
  EXPECT_THAT(log->lines[1], HasSubstr("class Linear was called without a name"));
  EXPECT_THAT(log->lines[2], HasSubstr("'MSELoss' has the shape [4, 2]"));
  EXPECT_THAT(log->lines[3], HasSubstr("A loss without a name"));
  EXPECT_THAT(log->lines[4], HasSubstr("'NoLoss' is an undefined tensor"));
  EXPECT_FALSE(mh.status().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(), ElementsAre("MSELoss_output_0"));
}

TEST_F(LibtorchTest, what_cannot_be_read_is_said_and_does_no_harm) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  {
    auto step = mh.begin_step();
    mh.save("no_memory", torch::empty({2}, torch::kMeta));
    mh.save("bits", torch::empty({2}, torch::kBits8));
    Tensor released = torch::ones({2});
    released.unsafeGetTensorImpl()->unsafe_storage().set_data_ptr(at::DataPtr());
    mh.save("released", released);
    mh.save("fine", torch::ones({2}));
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(), ElementsAre("Linear_bias", "Linear_weight", "fine"));
  ASSERT_EQ(log->lines.size(), 3u);
  EXPECT_THAT(log->lines[0], HasSubstr("'no_memory' cannot be saved: it has no memory"));
  EXPECT_THAT(log->lines[1], HasSubstr("'bits' cannot be saved"));
  EXPECT_THAT(log->lines[2], HasSubstr("'released' cannot be saved"));
}

TEST_F(LibtorchTest, what_the_model_throws_comes_out_and_the_next_step_is_whole) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  for (int i = 0; i < 2; ++i) {
    auto step = mh.begin_step();
    if (i == 0) {
      EXPECT_THROW(mh.call(net, torch::ones({1, 7})), c10::Error);
    } else {
      mh.call(net, torch::ones({1, 2})).sum().backward();
    }
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps_of("Linear_output_0"), ElementsAre(1));
  EXPECT_THAT(steps_of("gradient/Linear_weight"), ElementsAre(1));
  EXPECT_THAT(log->lines, IsEmpty());
}

TEST_F(LibtorchTest, a_nan_starts_saving_at_once) {
  smd::HookOptions o = options();
  o.config.include_collections = {"weights", "gradients"};
  o.config.save_config = *smd::SaveConfig::broadcast(
      {.save_interval = 100, .start_step = 100, .when_nan = {"Linear_output_0"}});
  const auto hook = make(std::move(o));
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  for (int i = 0; i < 3; ++i) {
    auto step = mh.begin_step();
    const float odd = i == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
    mh.call(net, torch::full({1, 2}, odd)).sum().backward();
    net->zero_grad();
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps_of("Linear_weight"), testing::Contains(1));
  EXPECT_THAT(steps_of("Linear_weight"), testing::Not(testing::Contains(0)));
  EXPECT_THAT(steps_of("gradient/Linear_weight"), testing::Contains(1));
}

TEST_F(LibtorchTest, training_is_the_same_with_and_without_a_hook) {
  const auto train = [](Net& net, ModuleHook* mh) {
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int i = 0; i < 5; ++i) {
      const auto run = [&] {
        optimizer.zero_grad();
        net.forward(torch::randn({5, 3})).square().sum().backward();
        optimizer.step();
      };
      if (mh == nullptr) {
        run();
      } else {
        auto step = mh->begin_step();
        run();
      }
    }
  };
  torch::manual_seed(3);
  Net plain;
  train(plain, nullptr);
  const auto hook = saving_every(1);
  torch::manual_seed(3);
  Net recorded;
  ModuleHook mh(*hook, recorded, "Net");
  recorded.use(&mh);
  train(recorded, &mh);
  const auto a = plain.parameters(), b = recorded.parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i]));
}

TEST_F(LibtorchTest, a_hook_that_is_gone_leaves_backward_alone) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  Tensor loss;
  {
    ModuleHook mh(*hook, *net);
    auto step = mh.begin_step();
    loss = net(torch::ones({1, 2})).sum();
  }
  loss.backward();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps_of("gradient/Linear_weight"), IsEmpty());
}

TEST_F(LibtorchTest, a_step_that_ends_late_does_not_disturb_the_next) {
  const auto hook = saving_every(1);
  torch::nn::Linear net(2, 1);
  ModuleHook mh(*hook, *net);
  {
    std::unique_ptr<ModuleHook::Step> first(new ModuleHook::Step(mh.begin_step()));
    auto second = mh.begin_step();
    first.reset();
    EXPECT_EQ(mh.attached_gradients(), 2u);
    net(torch::ones({1, 2})).sum().backward();
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps_of("gradient/Linear_weight"), ElementsAre(1));
}

TEST_F(LibtorchTest, classes_are_named_without_namespace_and_ending) {
  EXPECT_EQ(class_name(Net()), "Net");
  EXPECT_EQ(class_name(BlockImpl()), "Block");
  EXPECT_EQ(class_name(*torch::nn::Linear(1, 1)), "Linear");
  EXPECT_EQ(member_name("this->fc1"), "fc1");
  EXPECT_EQ(member_name("layers.fc1"), "fc1");
  EXPECT_EQ(member_name("(*fc1)"), "fc1");
}

}  // namespace
}  // namespace smdebug::torch_adapter
