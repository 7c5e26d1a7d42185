// SPDX-License-Identifier: Apache-2.0
// Trains a small neural network on handwritten digits, data-parallel, in C++ alone:
//
//   horo run -np 2 build/release/examples/digits
//
// Every rank takes its share of each batch. The sum of the ranks' gradients is the gradient of the
// whole batch, so the result does not depend on the number of ranks, up to rounding. Three steps,
// marked (1), (2) and (3) below, make it data-parallel.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>

#include <horo/horo.hpp>

namespace {

constexpr std::size_t kPixels = 64;
constexpr std::size_t kHidden = 64;
constexpr std::size_t kClasses = 10;
constexpr std::size_t kBatch = 64;  // over all ranks together
constexpr int kEpochs = 30;
constexpr float kLearningRate = 0.1F;
constexpr float kMomentum = 0.9F;
constexpr std::size_t kTestEvery = 5;  // every fifth image is kept for the test

struct Image {
  std::array<float, kPixels> pixels;  // 0 paper ... 1 ink
  std::size_t label;
};

struct Digits {
  std::vector<Image> train;
  std::vector<Image> test;
};

Digits read_digits(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw std::runtime_error("cannot open '" + path +
                             "'; give the path of digits.csv.gz as argument");
  }
  Digits digits;
  std::array<char, 1024> line{};
  for (std::size_t index = 0; gzgets(file, line.data(), line.size()) != nullptr; ++index) {
    Image image{};
    const char* at = line.data();
    char* end = nullptr;
    for (float& pixel : image.pixels) {
      pixel = std::strtof(at, &end) / 16.0F;
      at = end + 1;
    }
    image.label = std::strtoul(at, nullptr, 10);
    (index % kTestEvery == kTestEvery - 1 ? digits.test : digits.train).push_back(image);
  }
  gzclose(file);
  return digits;
}

// A fully connected layer: weights[output][input]. The last input is the constant 1 of the bias.
class Layer {
 public:
  Layer(const std::string& name, std::size_t inputs, std::size_t outputs, std::mt19937& random)
      : inputs_(inputs),
        outputs_(outputs),
        weights_((inputs + 1) * outputs),
        velocity_(weights_.size()),
        // (1) Gradients lie in memory that the ranks share, and have a name that all ranks know.
        gradient_(weights_.size()),
        reduce_(horo::Tensor<float>::allreduce(name + ".gradient", weights_.size(),
                                               {.op = horo::ReduceOp::sum})) {
    std::normal_distribution<float> normal(0.0F, std::sqrt(2.0F / static_cast<float>(inputs)));
    std::generate(weights_.begin(), weights_.end(), [&] { return normal(random); });
  }

  std::span<float> weights() { return weights_; }

  void forward(std::span<const float> in, std::span<float> out) const {
    for (std::size_t o = 0; o < outputs_; ++o) {
      const float* row = &weights_[o * (inputs_ + 1)];
      out[o] = std::inner_product(in.begin(), in.end(), row, row[inputs_]);
    }
  }

  // Adds one image's gradient. `out` holds the derivative of the loss with respect to the outputs.
  void add_gradient(std::span<const float> in, std::span<const float> out) {
    for (std::size_t o = 0; o < outputs_; ++o) {
      float* row = &gradient_[o * (inputs_ + 1)];
      for (std::size_t i = 0; i < inputs_; ++i) {
        row[i] += out[o] * in[i];
      }
      row[inputs_] += out[o];
    }
  }

  // The derivative of the loss with respect to the inputs.
  void backward(std::span<const float> out, std::span<float> in) const {
    std::fill(in.begin(), in.end(), 0.0F);
    for (std::size_t o = 0; o < outputs_; ++o) {
      const float* row = &weights_[o * (inputs_ + 1)];
      for (std::size_t i = 0; i < inputs_; ++i) {
        in[i] += out[o] * row[i];
      }
    }
  }

  // (2) Starts to sum the gradient over the ranks and returns at once. Gradients that are in flight
  // at the same time are reduced together.
  [[nodiscard]] horo::Op reduce() const { return reduce_.submit(gradient_); }

  // One step of gradient descent with momentum; the gradient is zero again afterwards.
  void step() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      velocity_[i] = kMomentum * velocity_[i] + gradient_[i] / static_cast<float>(kBatch);
      weights_[i] -= kLearningRate * velocity_[i];
      gradient_[i] = 0.0F;
    }
  }

 private:
  std::size_t inputs_;
  std::size_t outputs_;
  std::vector<float> weights_;
  std::vector<float> velocity_;
  horo::SharedBuffer<float> gradient_;
  horo::Tensor<float> reduce_;
};

class Network {
 public:
  explicit Network(std::mt19937& random)
      : first_("first", kPixels, kHidden, random), second_("second", kHidden, kClasses, random) {}

  // (3) All ranks start from rank 0's weights.
  void broadcast(const horo::Job& job) {
    job.broadcast("first.weights", first_.weights());
    job.broadcast("second.weights", second_.weights());
  }

  std::size_t classify(const Image& image) {
    first_.forward(image.pixels, hidden_);
    for (float& value : hidden_) {
      value = std::max(value, 0.0F);
    }
    second_.forward(hidden_, scores_);
    return static_cast<std::size_t>(std::max_element(scores_.begin(), scores_.end()) -
                                    scores_.begin());
  }

  void learn(const Image& image) {
    const std::size_t best = classify(image);
    const float largest = scores_[best];
    float total = 0.0F;
    for (float& score : scores_) {
      score = std::exp(score - largest);
      total += score;
    }
    for (float& score : scores_) {
      score /= total;  // now probabilities
    }
    scores_[image.label] -= 1.0F;  // now the derivative of the loss
    second_.add_gradient(hidden_, scores_);
    std::array<float, kHidden> derivative{};
    second_.backward(scores_, derivative);
    for (std::size_t i = 0; i < kHidden; ++i) {
      derivative[i] = hidden_[i] > 0.0F ? derivative[i] : 0.0F;
    }
    first_.add_gradient(image.pixels, derivative);
  }

  void step() {
    horo::Op second = second_.reduce();
    horo::Op first = first_.reduce();
    second.wait();
    second_.step();
    first.wait();
    first_.step();
  }

 private:
  Layer first_;
  Layer second_;
  std::array<float, kHidden> hidden_{};
  std::array<float, kClasses> scores_{};
};

// All ranks shuffle in the same way. Each rank takes the images of a batch whose number, modulo the
// job's size, is its own.
void train(const horo::Job& job, Network& network, const std::vector<Image>& images,
           std::mt19937& random) {
  const auto rank = static_cast<std::size_t>(job.rank());
  const auto size = static_cast<std::size_t>(job.size());
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t batch = 0; batch + kBatch <= order.size(); batch += kBatch) {
    for (std::size_t i = rank; i < kBatch; i += size) {
      network.learn(images[order[batch + i]]);
    }
    network.step();
  }
}

double accuracy(const horo::Job& job, Network& network, const std::vector<Image>& images) {
  std::vector<std::int64_t> right(1);
  for (std::size_t i = static_cast<std::size_t>(job.rank()); i < images.size();
       i += static_cast<std::size_t>(job.size())) {
    right[0] += network.classify(images[i]) == images[i].label ? 1 : 0;
  }
  job.allreduce<std::int64_t>("right", right, {.op = horo::ReduceOp::sum});
  return static_cast<double>(right[0]) / static_cast<double>(images.size());
}

void run(const std::string& path) {
  const horo::Job job;
  const Digits digits = read_digits(path);
  std::mt19937 random(1998);
  Network network(random);
  network.broadcast(job);

  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    train(job, network, digits.train, random);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const double right = accuracy(job, network, digits.test);
  if (job.rank() == 0) {
    const double images = static_cast<double>(digits.train.size()) * kEpochs;
    std::printf("%d rank(s): test accuracy %.2f %%, %.0f images/s\n", job.size(), 100.0 * right,
                images / seconds.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/digits.csv.gz");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}
