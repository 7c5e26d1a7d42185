// SPDX-License-Identifier: Apache-2.0
// Trains a small convolutional network on handwritten digits, data-parallel, with libtorch:
//
//   horo run -np 2 build/release/examples/torch_digits
//
// Every rank takes its share of each batch, and the gradients are averaged over all ranks, so the
// result does not depend on the number of ranks (up to rounding). Four things make the training of
// one process a distributed one, marked (1) to (4) below.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <torch/torch.h>
#include <utility>
#include <vector>
#include <zlib.h>

#include <horo/horo.hpp>

namespace {

constexpr std::int64_t kSide = 8;    // pixels
constexpr std::int64_t kBatch = 64;  // over all ranks together
constexpr int kEpochs = 12;
constexpr double kLearningRate = 0.05;
constexpr double kMomentum = 0.9;
constexpr std::int64_t kTestEvery = 5;  // every fifth image is held back for the test

struct Images {
  torch::Tensor pixels;  // [count, 1, 8, 8]; 0 paper ... 1 ink
  torch::Tensor labels;  // [count]

  Images at(const torch::Tensor& indices) const {
    return {pixels.index_select(0, indices), labels.index_select(0, indices)};
  }
};

Images read_digits(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw std::runtime_error("cannot open '" + path +
                             "'; give the path of digits.csv.gz as argument");
  }
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  std::array<char, 1024> line{};
  while (gzgets(file, line.data(), line.size()) != nullptr) {
    char* at = line.data();
    for (int i = 0; i < kSide * kSide; ++i) {
      pixels.push_back(std::strtof(at, &at) / 16.0F);
      ++at;  // the comma
    }
    labels.push_back(std::strtol(at, nullptr, 10));
  }
  gzclose(file);
  return {torch::tensor(pixels).view({-1, 1, kSide, kSide}), torch::tensor(labels)};
}

struct NetworkImpl : torch::nn::Module {
  torch::nn::Conv2d first{nullptr};
  torch::nn::Conv2d second{nullptr};
  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear scores{nullptr};

  NetworkImpl() {
    first = register_module("first", torch::nn::Conv2d(conv(1, 16)));
    second = register_module("second", torch::nn::Conv2d(conv(16, 32)));
    hidden = register_module("hidden", torch::nn::Linear(32 * 4 * 4, 64));
    scores = register_module("scores", torch::nn::Linear(64, 10));
  }

  torch::Tensor forward(const torch::Tensor& images) {
    auto x = torch::relu(first(images));
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return scores(torch::relu(hidden(x.flatten(1))));
  }

 private:
  static torch::nn::Conv2dOptions conv(std::int64_t in, std::int64_t out) {
    return torch::nn::Conv2dOptions(in, out, 3).padding(1);
  }
};

TORCH_MODULE(Network);

std::span<float> elements(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// (2) The gradients of a network, in memory that the ranks share: torch adds right into it, and the
// ranks of a host average it in place, without a copy.
class Gradients {
 public:
  explicit Gradients(Network& network) {
    for (const auto& parameter : network->named_parameters()) {
      const auto& value = parameter.value();
      const auto count = static_cast<std::size_t>(value.numel());
      auto& memory = memory_.emplace_back(count);
      value.mutable_grad() = torch::from_blob(memory.data(), value.sizes());
      reductions_.push_back(horo::Tensor<float>::allreduce(parameter.key(), count));
    }
  }

  // In place of the optimizer's zero_grad, which would give the memory up.
  void clear() {
    for (auto& memory : memory_) std::fill(memory.begin(), memory.end(), 0.0F);
  }

  // All under way at once: what is ready on every rank travels together.
  void average() {
    std::vector<horo::Op> ops;
    for (std::size_t i = 0; i < reductions_.size(); ++i)
      ops.push_back(reductions_[i].submit(memory_[i]));
    horo::wait_all(ops);
  }

 private:
  std::vector<horo::SharedBuffer<float>> memory_;
  std::vector<horo::Tensor<float>> reductions_;
};

// (3) Everybody starts from rank 0's weights.
void broadcast(const horo::Job& job, Network& network) {
  const torch::NoGradGuard no_gradient;
  for (const auto& parameter : network->named_parameters())
    job.broadcast("start." + parameter.key(), elements(parameter.value()));
}

// (4) Every rank shuffles alike and takes its part of each batch.
void train(const horo::Job& job, Network& network, const Images& images) {
  Gradients gradients(network);
  torch::optim::SGD optimizer(network->parameters(),
                              torch::optim::SGDOptions(kLearningRate).momentum(kMomentum));
  const auto count = images.labels.size(0);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = torch::randperm(count, torch::kInt64);
    for (std::int64_t begin = 0; begin + kBatch <= count; begin += kBatch) {
      const auto mine = images.at(order.slice(0, begin + job.rank(), begin + kBatch, job.size()));
      gradients.clear();
      torch::cross_entropy_loss(network(mine.pixels), mine.labels).backward();
      gradients.average();
      optimizer.step();
    }
  }
}

// Share of right answers; each rank tests its part.
double accuracy(const horo::Job& job, Network& network, const Images& images) {
  const torch::NoGradGuard no_gradient;
  const auto count = images.labels.size(0);
  const auto mine = images.at(torch::arange(job.rank(), count, job.size()));
  const auto right = network(mine.pixels).argmax(1).eq(mine.labels).sum().item<std::int64_t>();
  std::array<std::int64_t, 1> sum{right};
  job.allreduce<std::int64_t>("right", sum, {.op = horo::ReduceOp::sum});
  return static_cast<double>(sum[0]) / static_cast<double>(count);
}

void run(const std::string& path) {
  const horo::Job job;        // (1)
  torch::set_num_threads(1);  // one core per rank
  torch::manual_seed(1998);
  const auto digits = read_digits(path);
  const auto all = torch::arange(digits.labels.size(0));
  const auto held_back = all.remainder(kTestEvery).eq(kTestEvery - 1);
  const auto training = digits.at(all.masked_select(held_back.logical_not()));
  const auto test = digits.at(all.masked_select(held_back));

  Network network;
  broadcast(job, network);
  const auto start = std::chrono::steady_clock::now();
  train(job, network, training);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const double right = accuracy(job, network, test);
  if (job.rank() == 0) {
    const auto images = static_cast<double>(training.labels.size(0)) * kEpochs;
    std::printf("%d rank(s): test accuracy %.2f %%, %.0f images/s\n", job.size(), 100 * right,
                images / seconds.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/digits.csv.gz");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_digits: %s\n", error.what());
    return 1;
  }
}
