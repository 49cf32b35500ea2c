// Trains a small network on points of two rings, in plain C++, and records the training.
// Usage: train [directory]

#include <smd/smd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kPoints = 256;
constexpr int kHidden = 8;
constexpr int kSteps = 200;
constexpr float kRate = 0.5f;

struct Points {
  float x[kPoints][2];
  float ring[kPoints];  // 0: the inner one, 1: the outer one
};

Points two_rings(std::mt19937& random) {
  std::uniform_real_distribution<float> angle(0, 6.2831853f);
  std::normal_distribution<float> noise(0, 0.1f);
  Points points;
  for (int i = 0; i < kPoints; ++i) {
    const float turn = angle(random);
    points.ring[i] = static_cast<float>(i % 2);
    const float radius = 0.5f + points.ring[i] + noise(random);
    points.x[i][0] = radius * std::cos(turn);
    points.x[i][1] = radius * std::sin(turn);
  }
  return points;
}

// The parameters of two layers, or the gradients of them.
struct Network {
  float hidden_weight[kHidden][2] = {};
  float hidden_bias[kHidden] = {};
  float output_weight[kHidden] = {};
  float output_bias = 0;
};

Network random_network(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 0.7f);
  Network network;
  for (auto& row : network.hidden_weight) {
    for (float& weight : row) weight = normal(random);
  }
  for (float& weight : network.output_weight) weight = normal(random);
  return network;
}

// One pass over all points. Gives the loss; fills the gradients and the activations of the hidden
// layer.
double forward_and_backward(const Network& network, const Points& points, Network& gradient,
                            std::vector<float>& hidden) {
  gradient = {};
  double loss = 0;
  for (int i = 0; i < kPoints; ++i) {
    float* h = &hidden[static_cast<size_t>(i) * kHidden];
    float logit = network.output_bias;
    for (int j = 0; j < kHidden; ++j) {
      h[j] = std::tanh(network.hidden_weight[j][0] * points.x[i][0] +
                       network.hidden_weight[j][1] * points.x[i][1] + network.hidden_bias[j]);
      logit += network.output_weight[j] * h[j];
    }
    const float guess = 1 / (1 + std::exp(-logit));
    const bool outer = points.ring[i] != 0;
    loss -= std::log(std::max(outer ? guess : 1 - guess, 1e-7f)) / kPoints;

    const float error = (guess - points.ring[i]) / kPoints;
    gradient.output_bias += error;
    for (int j = 0; j < kHidden; ++j) {
      gradient.output_weight[j] += error * h[j];
      const float back = error * network.output_weight[j] * (1 - h[j] * h[j]);
      gradient.hidden_bias[j] += back;
      gradient.hidden_weight[j][0] += back * points.x[i][0];
      gradient.hidden_weight[j][1] += back * points.x[i][1];
    }
  }
  return loss;
}

void descend(Network& network, const Network& gradient) {
  for (int j = 0; j < kHidden; ++j) {
    network.hidden_weight[j][0] -= kRate * gradient.hidden_weight[j][0];
    network.hidden_weight[j][1] -= kRate * gradient.hidden_weight[j][1];
    network.hidden_bias[j] -= kRate * gradient.hidden_bias[j];
    network.output_weight[j] -= kRate * gradient.output_weight[j];
  }
  network.output_bias -= kRate * gradient.output_bias;
}

constexpr char kConfig[] = R"({
  "HookParameters": {"save_interval": 50, "include_regex": "hidden/output"},
  "CollectionConfigurations": [
    {"CollectionName": "weights"},
    {"CollectionName": "biases"},
    {"CollectionName": "gradients", "CollectionParameters": {"reductions": "min,max,l2_norm"}}
  ]
})";

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "run";
  const auto created = smd::create_hook(directory, kConfig);
  if (!created.ok()) {
    std::fprintf(stderr, "%s\n", created.error().message.c_str());
    return 1;
  }
  smd::Hook& hook = **created;

  std::mt19937 random(1);
  const Points points = two_rings(random);
  Network network = random_network(random);
  Network gradient;
  std::vector<float> hidden(kPoints * kHidden);
  double loss = 0;
  for (int i = 0; i < kSteps; ++i) {
    smd::StepScope step(hook, smd::Mode::train);
    loss = forward_and_backward(network, points, gradient, hidden);
    step.save("hidden/weight", smd::view(network.hidden_weight));
    step.save("hidden/bias", smd::view(network.hidden_bias));
    step.save("output/weight", smd::view(network.output_weight, {1, kHidden}));
    step.save("output/bias", smd::view(&network.output_bias, {1}));
    step.save("hidden/output", smd::view(hidden, {kPoints, kHidden}));
    step.save("gradient/hidden/weight", smd::view(gradient.hidden_weight));
    step.save("gradient/output/weight", smd::view(gradient.output_weight, {1, kHidden}));
    step.save_scalar("loss", loss);
    descend(network, gradient);
  }

  if (const smd::Status closed = hook.close(); !closed.ok()) {
    std::fprintf(stderr, "%s\n", closed.error().message.c_str());
    return 1;
  }
  std::printf("The loss after %d steps is %.4f; the run is in %s\n", kSteps, loss,
              directory.c_str());
  return 0;
}
