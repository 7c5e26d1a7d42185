// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/predict.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace horo::runtime::sim {

namespace {

constexpr std::uint64_t kSmallest = 4;
constexpr int kStepsBefore = 2;  // The first agrees on names.
constexpr int kSteps = 2;
constexpr auto kLimit = std::chrono::hours(100'000);  // It is virtual time.

/// The steps of one training with one setting.
class StepRun {
 public:
  StepRun(StepPredictor& predictor, const Cluster& cluster, const TunedValues& values)
      : predictor_(predictor),
        training_(cluster.training),
        latency_(predictor.sum_time(kSmallest)),
        world_(tuned(cluster, values)) {
    world_.network().use(links_of(cluster));
    started_.resize(static_cast<std::size_t>(world_.hosts()));
    world_.on_publish([this](int host, SetId, std::uint64_t entry) { entry_came(host, entry); });
    for (std::size_t t = 0; t < training_.tensors.size(); ++t) {
      names_.push_back(fmt::format("DistributedOptimizer.allreduce.{}", t));
      bytes_of_[names_.back()] = training_.tensors[t].bytes;
    }
  }

  /// The time of a step.
  Duration step() {
    auto& network = world_.network();
    const auto begin = network.now();
    for (std::size_t t = 0; t < training_.tensors.size(); ++t)
      network.at(begin + training_.tensors[t].at, [this, t] { submit(t); });
    left_ = training_.tensors.size();
    HORO_CHECK(world_.run(kLimit, [this] { return left_ == 0; }));
    const auto end = std::max(network.now(), begin + training_.compute);
    world_.run(end - network.now(), [] { return false; });
    return end - begin;
  }

  std::uint64_t entries() const { return entries_; }

 private:
  static WorldParams tuned(const Cluster& cluster, const TunedValues& values) {
    auto params = params_of(cluster);
    params.rules.fusion_threshold = values.fusion_threshold;
    params.rules.cycle = values.cycle;
    params.caller_runs = true;
    return params;
  }

  void submit(std::size_t tensor) {
    Signature signature;
    const auto extent = static_cast<std::int64_t>(training_.tensors[tensor].bytes / 4);
    HORO_CHECK(set_shape(signature, {&extent, 1}));
    for (int r = 0; r < world_.size(); ++r)
      HORO_CHECK(world_.submit(Rank{r}, names_[tensor], signature));
  }

  /// A sum begins when the last host has its entry.
  void entry_came(int host, std::uint64_t entry) {
    auto& records = world_.log(host);
    if (host == 0) {
      tensors_of_.push_back(records.records().back().names);
    }
    records.forget_records();
    started_[static_cast<std::size_t>(host)] = entry + 1;
    const auto everywhere = *std::min_element(started_.begin(), started_.end());
    for (; summed_ < everywhere; ++summed_) sum(tensors_of_[summed_ - finished_]);
  }

  void sum(const std::vector<std::string>& names) {
    std::uint64_t bytes = 0;
    for (const auto& name : names) bytes += bytes_of_.at(name);
    const auto now = world_.network().now();
    const auto time = predictor_.sum_time(bytes);
    free_ = std::max(now + time, free_ + std::max(Duration{}, time - latency_));
    world_.network().at(free_, [this] { finish_first(); });
    ++entries_;
  }

  void finish_first() {
    left_ -= tensors_of_.front().size();
    tensors_of_.pop_front();
    ++finished_;
    for (int h = 0; h < world_.hosts(); ++h) world_.log(h).finish_next();
  }

  StepPredictor& predictor_;
  const TrainingStep& training_;
  const Duration latency_;  ///< The smallest sum takes it.
  World world_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint64_t> bytes_of_;
  std::vector<std::uint64_t> started_;               ///< By host: entries that it has.
  std::deque<std::vector<std::string>> tensors_of_;  ///< By entry, from the first unfinished one.
  std::uint64_t summed_ = 0;
  std::uint64_t finished_ = 0;
  TimePoint free_{};  ///< When the last sum ends.
  std::size_t left_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace

StepPredictor::StepPredictor(const Cluster& cluster) : cluster_(cluster), sums_(cluster) {
  HORO_CHECK(cluster.hosts() > 1 && !cluster.training.tensors.empty());
  sums_.start();
}

StepPrediction StepPredictor::predict(const TunedValues& values) {
  StepRun run(*this, cluster_, values);
  for (int i = 0; i < kStepsBefore; ++i) run.step();
  const auto before = run.entries();
  Duration total{};
  for (int i = 0; i < kSteps; ++i) total += run.step();
  return {.step = total / kSteps, .entries = (run.entries() - before) / kSteps};
}

Duration StepPredictor::sum_time(std::uint64_t bytes) {
  // Between the powers of two and their halves times three the time is nearly linear.
  const auto power = std::bit_floor(std::max(bytes, kSmallest));
  const auto half = power + power / 2;
  const auto low = bytes < half ? power : half;
  const auto high = bytes < half ? half : 2 * power;
  const auto begin = simulated_sum(low);
  if (bytes <= low || high % 4 != 0) return begin;
  const auto share = static_cast<double>(bytes - low) / static_cast<double>(high - low);
  const auto more = static_cast<double>((simulated_sum(high) - begin).count()) * share;
  return begin + Duration(static_cast<Duration::rep>(more));
}

Duration StepPredictor::simulated_sum(std::uint64_t bytes) {
  const auto found = times_.find(bytes);
  if (found != times_.end()) return found->second;
  return times_[bytes] = sums_.sum(bytes).again;
}

}  // namespace horo::runtime::sim
