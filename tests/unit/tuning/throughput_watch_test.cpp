// SPDX-License-Identifier: Apache-2.0
// The watch over a job's throughput, with sequences of samples whose answer is known.
#include "runtime/tuning/throughput_watch.hpp"

#include <random>

#include <catch2/catch.hpp>

using horo::runtime::tuning::ThroughputWatch;
using horo::runtime::tuning::WatchFinding;

namespace {

/// A training of which one sample is taken per second.
class Watched {
 public:
  explicit Watched(const horo::runtime::tuning::WatchRules& rules)
      : watch(rules), noise_(0.01), random_(1) {}

  explicit Watched(double noise = 0.01, std::uint64_t seed = 1) : noise_(noise), random_(seed) {}

  /// Samples around `score` for some seconds; the first finding besides learns and steady.
  WatchFinding run(int seconds, double score, double bytes_per_step = 1e6) {
    for (int i = 0; i < seconds; ++i) {
      now_ += 1;
      std::normal_distribution<double> spread(1, noise_);
      const auto finding = watch.add(
          {.score = score * spread(random_), .bytes_per_step = bytes_per_step, .seconds = now_});
      if (finding != WatchFinding::steady && finding != WatchFinding::learns) return finding;
    }
    return WatchFinding::steady;
  }

  double now() const { return now_; }

  ThroughputWatch watch{{.least_seconds = 60, .least_fall = 0.1}};

 private:
  const double noise_;
  std::mt19937_64 random_;
  double now_ = 1000;
};

}  // namespace

TEST_CASE("throughput that falls for long is found, and not before it has lasted") {
  Watched training;
  CHECK(training.run(100, 1e9) == WatchFinding::steady);
  const double fell = training.now();
  CHECK(training.run(200, 0.7e9) == WatchFinding::fallen);
  CHECK(training.now() - fell == 61);
  CHECK(training.watch.usual() == Approx(1e9).epsilon(0.02));
  CHECK(training.watch.now() == Approx(0.7e9).epsilon(0.02));
}

TEST_CASE("a fall that ends by itself is none, and the next must last three times as long") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  for (int i = 0; i < 4; ++i) {
    CHECK(training.run(50, 0.4e9) == WatchFinding::steady);
    CHECK(training.run(300, 1e9) == WatchFinding::steady);
  }
  const double fell = training.now();
  CHECK(training.run(1000, 0.4e9) == WatchFinding::fallen);
  CHECK(training.now() - fell > 140);
}

TEST_CASE("single low samples do not add up to a fall") {
  Watched training;
  CHECK(training.run(20, 1e9) == WatchFinding::steady);
  for (int i = 0; i < 300; ++i) {
    CHECK(training.run(1, 0.3e9) == WatchFinding::steady);
    CHECK(training.run(9, 1e9) == WatchFinding::steady);
  }
}

TEST_CASE("one usual sample does not end a fall") {
  Watched training;
  CHECK(training.run(20, 1e9) == WatchFinding::steady);
  CHECK(training.run(40, 0.5e9) == WatchFinding::steady);
  CHECK(training.run(1, 1e9) == WatchFinding::steady);
  CHECK(training.run(30, 0.5e9) == WatchFinding::fallen);
}

TEST_CASE("noise is no fall, whatever its size") {
  for (const double noise : {0.02, 0.1, 0.3}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(noise, seed);
      Watched training(noise, seed);
      CHECK(training.run(3000, 1e9) == WatchFinding::steady);
    }
  }
}

TEST_CASE("a fall smaller than the least one is none") {
  Watched training(0.001);
  CHECK(training.run(20, 1e9) == WatchFinding::steady);
  CHECK(training.run(2000, 0.92e9) == WatchFinding::steady);
}

TEST_CASE(
    "an evaluation that reduces other tensors is no fall, another training phase is a change") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  for (int i = 0; i < 3; ++i) {
    CHECK(training.run(150, 0.01e9, 64) == WatchFinding::steady);
    CHECK(training.run(500, 1e9) == WatchFinding::steady);
  }
  const double began = training.now();
  CHECK(training.run(2000, 1e9, 4e5) == WatchFinding::changed);
  CHECK(training.now() - began == 601);
}

TEST_CASE("a throughput that rises for long becomes the usual one") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  CHECK(training.run(100, 1.5e9) == WatchFinding::steady);
  CHECK(training.watch.usual() == Approx(1.5e9).epsilon(0.02));
  CHECK(training.run(100, 1e9) == WatchFinding::fallen);
}

TEST_CASE("after a new beginning the usual throughput is learnt again") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  training.watch.begin();
  CHECK(training.watch.usual() == 0);
  CHECK(training.run(500, 0.5e9) == WatchFinding::steady);
  CHECK(training.watch.usual() == Approx(0.5e9).epsilon(0.02));
}

TEST_CASE("a search that found nothing makes the watch wait twice as long") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  CHECK(training.run(100, 0.5e9) == WatchFinding::fallen);
  training.watch.begin();
  training.watch.be_patient();
  CHECK(training.run(50, 0.5e9) == WatchFinding::steady);
  const double fell = training.now();
  CHECK(training.run(200, 0.3e9) == WatchFinding::fallen);
  CHECK(training.now() - fell == 121);
}

TEST_CASE("patience never shortens a watch time that the user has set") {
  Watched training({.least_seconds = 7200, .least_fall = 0.1});
  training.watch.be_patient();
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  CHECK(training.run(7000, 0.5e9) == WatchFinding::steady);
  CHECK(training.run(300, 0.5e9) == WatchFinding::fallen);
}

TEST_CASE("after a search in vain another phase must last twice as long, too") {
  Watched training;
  training.watch.be_patient();
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  const double began = training.now();
  CHECK(training.run(2000, 1e9, 4e5) == WatchFinding::changed);
  CHECK(training.now() - began == 1201);
}

TEST_CASE("a fall does not last across steps of another kind") {
  Watched training;
  CHECK(training.run(50, 1e9) == WatchFinding::steady);
  CHECK(training.run(20, 0.5e9) == WatchFinding::steady);
  CHECK(training.run(50, 0.01e9, 64) == WatchFinding::steady);
  CHECK(training.run(20, 0.5e9) == WatchFinding::steady);
  CHECK(training.run(100, 0.5e9) == WatchFinding::fallen);
}
